"""The tests' own certificate authority, and servers' contexts signed by it."""

import datetime as dt
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_NAME = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tests")])


class _ServerContext(ssl.SSLContext):
    """Delays each handshake until the first read of its connection.

    By default it is part of `accept`: a client that aborts halfway would keep a server from
    accepting the next one, and from stopping.
    """

    def wrap_socket(self, *args, **keywords):
        return super().wrap_socket(*args, **keywords | {"do_handshake_on_connect": False})


class Authority:
    """Signs certificates for host names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._own = self._sign(
            self._key.public_key(), x509.BasicConstraints(ca=True, path_length=0), is_ca=True
        )

    def _sign(self, public, extension, *, is_ca):
        now = dt.datetime.now(dt.UTC)
        name = _NAME if is_ca else x509.Name([])
        issuer = self._key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(_NAME)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=1))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(extension, critical=True)
            # Since Python 3.13 a certificate must have these three to be trusted.
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), critical=False
            )
            .add_extension(_usage(is_ca=is_ca), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def server(self, *names: str) -> ssl.SSLContext:
        """Return a server's context with a certificate for these names."""
        key = ec.generate_private_key(ec.SECP256R1())
        alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
        chain = self._folder / f"{names[0]}.pem"
        chain.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + self._sign(key.public_key(), alternatives, is_ca=False).public_bytes(
                serialization.Encoding.PEM
            )
        )
        context = _ServerContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        return context

    def client(self) -> ssl.SSLContext:
        """Return a client's context that trusts only this authority."""
        pem = self._own.public_bytes(serialization.Encoding.PEM).decode()
        return ssl.create_default_context(cadata=pem)


def _usage(*, is_ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_ca,
        key_cert_sign=is_ca,
        crl_sign=is_ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
