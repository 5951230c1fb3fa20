"""HTTP: servers, routes and JSON; `gateway.payments` decides about money."""
