#!/bin/sh
# Gives the volume, which is mounted as root's, to the gateway's user, and switches to that user.
set -eu
if [ "$(id -u)" = 0 ]; then
    # Includes files that commands run as root have left, which the gateway could not write.
    find "$GATEWAY_DATA_DIR" -xdev ! -user gateway -exec chown --no-dereference gateway:gateway {} +
    chmod 700 "$GATEWAY_DATA_DIR"
    exec setpriv --reuid=gateway --regid=gateway --init-groups --no-new-privs "$@"
fi
exec "$@"
