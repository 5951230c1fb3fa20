"""The TLS servers of the tests themselves."""

import socket

from pytest_httpserver import HTTPServer

HOST = "shop.example"


def test_a_client_that_gives_up_its_handshake_keeps_nobody_waiting(authority):
    with HTTPServer(ssl_context=authority.server(HOST), threaded=True) as server:
        server.expect_request("/").respond_with_data("hello")
        address = (server.host, server.port)
        # It sends nothing, and stays until the server has stopped.
        silent = socket.create_connection(address)
        connection = socket.create_connection(address)
        with authority.client().wrap_socket(connection, server_hostname=HOST) as secure:
            secure.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert secure.makefile("rb").read().endswith(b"hello")
    silent.close()
