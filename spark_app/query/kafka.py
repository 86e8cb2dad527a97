"""Kafka's settings for the connector: the project uses librdkafka's names, Spark's client Java's."""

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path

from contracts.model.topics import READ_COMMITTED
from spark_app.errors import UnsupportedOptionError

SAME = (
    "security.protocol",
    "client.id",
    "client.rack",
    "ssl.endpoint.identification.algorithm",
    "sasl.kerberos.service.name",
    "sasl.kerberos.min.time.before.relogin",
)
"""Options with one name, and one form, in both clients."""
SECURITY = ("ssl.", "sasl.", "security.", "enable.ssl.", "enable.sasl.")
"""The beginnings of options that a client must not ignore."""
HARMLESS = ("sasl.kerberos.kinit.cmd",)
"""Options of these that Java's client does by itself."""
PEM = ("ssl.key.pem", "ssl.key.location", "ssl.certificate.pem", "ssl.certificate.location")
LOGINS = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}

OAUTH = "org.apache.kafka.common.security.oauthbearer"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
PBES2 = bytes.fromhex("06092a864886f70d01050d")
"""The identifier of the encryption of keys that Java's client of Kafka does not know (RFC 8018)."""
NOT_PKCS8 = ("BEGIN RSA PRIVATE KEY", "BEGIN EC PRIVATE KEY", "BEGIN DSA PRIVATE KEY")

CONSUMER = {f"kafka.{name}": value for name, value in READ_COMMITTED.items()}
"""Further options of the sources' consumers."""
PRODUCER = {
    # Snapshots of one device are much alike, and the broker's work goes by requests and bytes: a third more records
    # a second when it shares the machine, for at most a millisecond of latency. While one batch waits behind another,
    # each further record wakes the sender, so a batch is large; the memory is for one in each of many partitions.
    "kafka.linger.ms": "1",
    "kafka.batch.size": "524288",
    "kafka.buffer.memory": "134217728",
    "kafka.compression.type": "lz4",
}
"""Further options of the sink's producer."""


def connector(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of Spark's Kafka source and sink for these of librdkafka, without the `ignored` ones.

    Raises UnsupportedOptionError for an option of security that Java's client cannot have. Keys and certificates are
    read here, so that executors need no files of them.
    """
    left = dict(options)
    java = {"bootstrap.servers": left.pop("bootstrap.servers")}
    java |= {name: left.pop(name) for name in SAME if name in left}
    java |= _login(left) | _authorities(left) | _certificate(left)
    for name in left:
        if name.startswith(SECURITY) and name not in HARMLESS:
            raise UnsupportedOptionError(name)
    return {f"kafka.{name}": value for name, value in java.items()}


def ignored(options: Mapping[str, str]) -> list[str]:
    """Return the names of the options that `connector` leaves out: they tune the client of the other parts."""
    others = options.keys() - {"bootstrap.servers", *SAME}
    return sorted(name for name in others if name in HARMLESS or not name.startswith(SECURITY))


def _login(left: dict[str, str]) -> dict[str, str]:
    mechanism = left.pop("sasl.mechanism", left.pop("sasl.mechanisms", None))
    if mechanism is None:
        return {}
    if mechanism in LOGINS:
        fields = {"username": left.pop("sasl.username", None), "password": left.pop("sasl.password", None)}
        return _jaas(mechanism, LOGINS[mechanism], fields)
    if mechanism == "GSSAPI":
        fields = {
            "keyTab": left.pop("sasl.kerberos.keytab", None),
            "principal": left.pop("sasl.kerberos.principal", None),
        }
        return _jaas(mechanism, KERBEROS, fields)
    if mechanism == "OAUTHBEARER" and left.pop("sasl.oauthbearer.method", None) == "oidc":
        return _oidc(left)
    needs = f"{', '.join(LOGINS)}, GSSAPI, or OAUTHBEARER with sasl.oauthbearer.method=oidc"
    raise UnsupportedOptionError("sasl.mechanism", f"it takes {needs}")


def _oidc(left: dict[str, str]) -> dict[str, str]:
    fields = {
        "clientId": left.pop("sasl.oauthbearer.client.id", None),
        "clientSecret": left.pop("sasl.oauthbearer.client.secret", None),
    }
    if "sasl.oauthbearer.scope" in left:
        fields["scope"] = left.pop("sasl.oauthbearer.scope")
    for extension in filter(None, left.pop("sasl.oauthbearer.extensions", "").split(",")):
        name, _, value = extension.partition("=")
        fields[f"extension_{name}"] = value
    address = "sasl.oauthbearer.token.endpoint.url"
    if address not in left:
        raise UnsupportedOptionError("sasl.mechanism", f"OAUTHBEARER needs {address}")
    handler = {"sasl.login.callback.handler.class": f"{OAUTH}.OAuthBearerLoginCallbackHandler"}
    module = f"{OAUTH}.OAuthBearerLoginModule"
    return _jaas("OAUTHBEARER", module, fields) | {address: left.pop(address)} | handler


def _jaas(mechanism: str, module: str, fields: Mapping[str, str | None]) -> dict[str, str]:
    if missing := [name for name, value in fields.items() if value is None]:
        raise UnsupportedOptionError("sasl.mechanism", f"{mechanism} needs the options of {' and '.join(missing)}")
    written = " ".join(f"{name}={_quoted(value)}" for name, value in fields.items() if value is not None)
    flags = " useKeyTab=true storeKey=true" if module == KERBEROS else ""
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": f"{module} required{flags} {written};"}


def _authorities(left: dict[str, str]) -> dict[str, str]:
    if "ssl.ca.location" in left:
        return {"ssl.truststore.type": "PEM", "ssl.truststore.location": left.pop("ssl.ca.location")}
    if "ssl.ca.pem" in left:
        return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": left.pop("ssl.ca.pem")}
    return {}


def _certificate(left: dict[str, str]) -> dict[str, str]:
    """The client's own certificate and key."""
    password = {"ssl.key.password": left.pop("ssl.key.password")} if "ssl.key.password" in left else {}
    if "ssl.keystore.location" in left:
        store = {name: left.pop(name) for name in ("ssl.keystore.location", "ssl.keystore.password") if name in left}
        return {"ssl.keystore.type": "PKCS12"} | store | password
    if not any(name in left for name in PEM):
        return password
    key, certificate = (_pem(left, part) for part in ("ssl.key", "ssl.certificate"))
    if key is None or certificate is None:
        raise UnsupportedOptionError(
            "ssl.certificate.location", "a certificate needs its key, and a key its certificate"
        )
    if any(kind in key for kind in NOT_PKCS8):
        convert = "write it as PKCS #8: openssl pkcs8 -topk8 -nocrypt -in client.key -out client.pk8"
        raise UnsupportedOptionError("ssl.key.location", f"Java does not read a key of this format; {convert}")
    if _is_encrypted_by_pbes2(key):
        decrypt = "give the job a key without a password: openssl pkey -in client.key -out job.key"
        raise UnsupportedOptionError("ssl.key.location", f"Java does not decrypt a key of this format; {decrypt}")
    own = {"ssl.keystore.type": "PEM", "ssl.keystore.key": key, "ssl.keystore.certificate.chain": certificate}
    return own | password


def _is_encrypted_by_pbes2(key: str) -> bool:
    body = key.partition("BEGIN ENCRYPTED PRIVATE KEY-----")[2].partition("-----END")[0]
    try:
        return PBES2 in base64.b64decode(body)
    except binascii.Error:
        return False


def _pem(left: dict[str, str], part: str) -> str | None:
    """Return a key or a certificate: its text, or the content of its file."""
    path, text = left.pop(f"{part}.location", None), left.pop(f"{part}.pem", None)
    if path is None:
        return text
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise UnsupportedOptionError(f"{part}.location", f"{path} cannot be read ({type(error).__name__})") from error


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
