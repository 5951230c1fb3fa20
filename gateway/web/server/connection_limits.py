"""How long and how much a client may take before it has an answer; the same for both servers."""

# A client that sends no complete head for so long, or nothing, or reads nothing, is cut off.
IDLE_S = 30
# A connection between two requests. It has to be longer than any proxy in front keeps it, so that
# the proxy closes it: a request on a connection that we close meanwhile is lost, and its client
# gets a 502. nginx keeps one for 60 s, cloudflared for 90 s, Caddy for 120 s. Google's load
# balancer keeps one for 600 s, which nobody can change.
KEEP_ALIVE_S = 620
# Of one connection; the answer to the last one says so.
MAX_REQUESTS = 10_000
# Of a request's line and headers together. A payment header of 32 KiB is 43,692 bytes in Base64.
MAX_HEAD_BYTES = 48 * 1024
# Each header costs microseconds to read, however short. Apache takes as many; browsers behind some
# proxies send thirty. Trailers have the same limit.
MAX_HEADERS = 100
# Each chunk of a body costs microseconds as well. Programs write chunks of kilobytes; so many of a
# body's may hold fewer bytes than this.
MAX_SHORT_CHUNKS = 1000
SHORT_CHUNK_BYTES = 64
# A client may still send this much after its answer. Closing at once would make the operating
# system drop the answer, too: a client that reads only after its last byte would see a reset.
MAX_UNREAD_BYTES = 32 * 1024 * 1024
# A transport that holds more tells the app to wait. What a connection holds below is not counted.
WRITE_BUFFER_BYTES = 16 * 1024
# Of a file, as it is read and sent. An answer of one piece waits whole.
PIECE_BYTES = 64 * 1024
# Connections that wait to be accepted.
BACKLOG = 2048
# At the end, once the app has drained, requests that are being answered have the first time. The
# second bounds an app that ends without having drained. Fly's `kill_timeout` is 120 s.
GRACE_S = 10
STOP_S = 115
