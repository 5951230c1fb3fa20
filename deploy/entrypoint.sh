#!/bin/sh
# Gives the volume, which arrives owned by root, to the user the gateway runs as, and becomes it.
set -eu
if [ "$(id -u)" = 0 ]; then
    # What a command of root has left there, too: the gateway could not write it.
    find "$GATEWAY_DATA_DIR" -xdev ! -user gateway -exec chown --no-dereference gateway:gateway {} +
    chmod 700 "$GATEWAY_DATA_DIR"
    exec setpriv --reuid=gateway --regid=gateway --init-groups --no-new-privs "$@"
fi
exec "$@"
