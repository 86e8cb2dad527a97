"""A broker with TLS, SCRAM-SHA-512 and an authorizer, shared by the tests of a run."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from services.tools.broker.__main__ import jvm_command
from services.tools.broker.jars import classpath
from services.tools.broker.java import find_java
from services.tools.broker.properties import HOST, cluster_id, server_properties
from services.tools.broker.readiness import wait_until
from services.tools.broker.storage import format_command
from tests.jvm import COMPILE_FAST
from tests.security.certificates import Certificates
from tests.services.tools.broker.embedded import CHECKOUT, READY_S, free_ports
from tests.shared import FOLDER, shared_process

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from services.tools.cli.acls import Acl

ADMIN, PASSWORD = "admin", "admin-secret-of-the-tests"  # of a broker that the tests start
LISTENERS = ("SECURED", "EXPIRED", "OTHERHOST", "MUTUAL")
"""The names of the listeners: SCRAM with a right certificate, an expired one, one of another host; and mutual TLS."""
LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"
CHANGE_S = 30.0


@dataclass(frozen=True)
class SecuredBroker:
    """The addresses of the broker, and its administration by a super user."""

    addresses: dict[str, str]
    folder: Path
    pid: int

    def options(self, user: str, password: str) -> dict[str, str]:
        """Return the options of a login over TLS."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": password,
            "ssl.ca.location": str(self.folder / "ca.pem"),
        }

    def certified(self, user: str, password: str) -> dict[str, str]:
        """Return the options of mutual TLS: a certificate of this user, whose key the password encrypts, if any."""
        key = self.folder / (f"{user}.key" if password else f"{user}.plain.key")
        secret = {"ssl.key.password": password} if password else {}
        return secret | {
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.folder / "ca.pem"),
            "ssl.certificate.location": str(self.folder / f"{user}.crt"),
            "ssl.key.location": str(key),
        }

    def settings(self, user: str, password: str, listener: str = "SECURED") -> dict[str, str]:
        """Return the environment variables with which a part reaches the broker."""
        options = self.certified if listener == "MUTUAL" else self.options
        return {
            "STATELOOP_KAFKA": self.addresses[listener],
            "STATELOOP_KAFKA_OPTIONS": json.dumps(options(user, password)),
        }

    @property
    def client(self) -> dict[str, str]:
        """The options of a client that may do everything."""
        return {"bootstrap.servers": self.addresses["SECURED"], **self.options(ADMIN, PASSWORD)}

    def admin(self) -> AdminClient:
        """Return a client of the super user. It has to live until its requests are answered."""
        return AdminClient({**self.client, "log_level": 0})

    def add_user(self, name: str, password: str) -> None:
        """Create a user with a password, and with a certificate whose key the password encrypts."""
        Certificates(self.folder).client(name, password)
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        change = UserScramCredentialUpsertion(name, credential, password.encode())
        admin = self.admin()
        for future in admin.alter_user_scram_credentials([change]).values():
            future.result(CHANGE_S)

    def grant(self, user: str, acls: Iterable[Acl]) -> None:
        """Grant a user rights."""
        admin = self.admin()
        for future in admin.create_acls([_binding(user, acl) for acl in acls]).values():
            future.result(CHANGE_S)

    def revoke(self, user: str, acl: Acl) -> None:
        """Remove a right of a user."""
        admin, granted = self.admin(), _binding(user, acl)
        chosen = AclBindingFilter(
            granted.restype,
            granted.name,
            granted.resource_pattern_type,
            granted.principal,
            granted.host,
            granted.operation,
            granted.permission_type,
        )
        for future in admin.delete_acls([chosen]).values():
            assert future.result(CHANGE_S), f"{user} has no {acl}"


def _binding(user: str, acl: Acl) -> AclBinding:
    return AclBinding(
        {"topic": ResourceType.TOPIC, "group": ResourceType.GROUP}[acl.kind],
        acl.name,
        ResourcePatternType.PREFIXED if acl.is_prefix else ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        _operation(acl.operation),
        AclPermissionType.ALLOW,
    )


def _operation(name: str) -> AclOperation:
    words = "".join(f"_{letter}" if letter.isupper() else letter for letter in name).strip("_")
    operation: AclOperation = AclOperation[words.upper()]
    return operation


def secured_broker() -> SecuredBroker:
    """Return the secured broker of the run, which another process may have started."""
    described = shared_process("secured-broker", _started)
    return SecuredBroker(described["addresses"], Path(os.environ[FOLDER]) / "secured", described["pid"])


def _started(run_folder: Path) -> dict[str, Any]:
    folder = run_folder / "secured"
    folder.mkdir()
    first = free_ports(len(LISTENERS) + 1)
    addresses = {name: f"{HOST}:{first + number}" for number, name in enumerate(LISTENERS)}
    properties = folder / "server.properties"
    text = server_properties(folder / "log", first, first + len(LISTENERS), timedelta(seconds=30))
    properties.write_text(text + _secured(addresses, first + len(LISTENERS), Certificates(folder)), encoding="ascii")
    java, path = find_java(), classpath(CHECKOUT / ".stateloop/jars", "broker")
    format_it = format_command(java, path, properties, cluster_id(uuid.uuid4()))
    scram = f"--add-scram=SCRAM-SHA-512=[name={ADMIN},password={PASSWORD}]"
    subprocess.run([*format_it, scram], check=True, capture_output=True, timeout=READY_S)
    environment = os.environ | {"JDK_JAVA_OPTIONS": COMPILE_FAST}
    with (folder / "broker.log").open("ab") as log:
        process = subprocess.Popen(jvm_command(java, path, "384m", properties), stdout=log, stderr=log, env=environment)
    broker = SecuredBroker(addresses, folder, process.pid)
    wait_until(lambda: process.poll() is not None or _answers(broker), f"broker ready, see {log.name}", READY_S)
    assert process.poll() is None, (folder / "broker.log").read_text(encoding="utf-8")[-3000:]
    process.returncode = 0  # Popen warns of a process that still runs
    return {"pid": process.pid, "addresses": addresses}


def _answers(broker: SecuredBroker) -> bool:
    try:
        AdminClient({**broker.client, "log_level": 0}).list_topics(timeout=1.0)
    except KafkaException:
        return False
    return True


def _secured(addresses: Mapping[str, str], controller_port: int, certificates: Certificates) -> str:
    """Return properties that replace those of the embedded broker, as later lines do."""
    listeners = ",".join(f"{name}://{address}" for name, address in addresses.items())
    protocols = ",".join(f"{name}:{'SSL' if name == 'MUTUAL' else 'SASL_SSL'}" for name in addresses)
    keys = {
        "SECURED": certificates.server("right"),
        "EXPIRED": certificates.server("expired", expired=True),
        "OTHERHOST": certificates.server("other-host", "kafka.example"),
        "MUTUAL": certificates.server("mutual"),
    }
    properties = {
        "listeners": f"{listeners},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,{protocols}",
        "inter.broker.listener.name": "SECURED",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # Only the broker itself reaches its controller without a name.
        "super.users": f"User:{ADMIN};User:ANONYMOUS",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.authority),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
    }
    for name, path in keys.items():
        prefix = f"listener.name.{name.lower()}"
        properties |= {f"{prefix}.ssl.keystore.type": "PEM", f"{prefix}.ssl.keystore.location": str(path)}
        if name != "MUTUAL":
            login = f'{LOGIN} username="{ADMIN}" password="{PASSWORD}";'
            properties[f"{prefix}.scram-sha-512.sasl.jaas.config"] = login
    return "".join(f"{key}={value}\n" for key, value in properties.items())
