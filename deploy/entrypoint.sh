#!/bin/sh
# Gives the volume, which arrives owned by root, to the user the gateway runs as, and becomes it.
set -eu
if [ "$(id -u)" = 0 ]; then
    chown gateway:gateway "$GATEWAY_DATA_DIR"
    exec setpriv --reuid=gateway --regid=gateway --init-groups --no-new-privs "$@"
fi
exec "$@"
