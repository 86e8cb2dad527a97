"""The stores that come with the sink, on real servers."""

from __future__ import annotations

import traceback
import uuid
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql

from contracts import StateloopError
from contracts.sinks import (
    Deletion,
    Move,
    Row,
    RowBatch,
    RowsRefusedError,
    Step,
    StoreMismatchError,
    StoreUnavailableError,
    Target,
    Windows,
)
from contracts.testing.stores import check_store
from services.sink import stores
from services.sink.errors import ClientMissingError
from services.sink.stores.postgresql import PostgresqlStore
from services.sink.stores.redis import RedisStore
from tests.services.sink.records import NOW_US

if TYPE_CHECKING:
    from tests.services.sink.servers import PostgresqlServer, RedisServer


async def test_redis_keeps_every_promise(redis_server: RedisServer) -> None:
    await check_store(redis_server)


async def test_postgresql_keeps_every_promise(postgresql_server: PostgresqlServer) -> None:
    await check_store(postgresql_server, refused=b'{"text": "\\u0000"}')


def test_only_a_store_with_a_client_library_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    without, missing = stores.REDIS._replace(client=None), stores.REDIS._replace(client="no_such_client")
    monkeypatch.setattr(stores, "STORES", {"without": without, "missing": missing})
    assert stores.store_factory("without://host", None) is RedisStore
    with pytest.raises(ClientMissingError, match=r"needs the package no_such_client: pip install 'stateloop\[redis\]'"):
        stores.store_factory("missing://host", None)


def target(windows: Windows = Windows.NEWEST) -> Target:
    return Target(f"own-{uuid.uuid4().hex[:12]}", "topic", windows)


DAY_US = 24 * 3600 * 1_000_000
ROW = Row("a", NOW_US, 1, 2, NOW_US, b'{"a": 1}', None, 0, 0)
BATCH = RowBatch((Step((), (ROW, ROW._replace(key="b"))),), {0: Move(0, 1)})


async def test_a_key_of_redis_that_is_no_row_is_refused_and_left_as_it_is(redis_server: RedisServer) -> None:
    where = target()
    store = redis_server.store(where)
    with redis_server.client() as client:
        client.set(f"{where.name}:a", "of somebody else")
        await store.open()
        deletion = RowBatch((Step((Deletion("a", None),), ()),), {0: Move(0, 0)})
        assert await store.write(deletion) == 0
        with pytest.raises(RowsRefusedError) as error:
            await store.write(BATCH)
        assert [one.row for one in error.value.refused] == [ROW]
        assert client.get(f"{where.name}:a") == "of somebody else"
        assert not client.exists(f"{where.name}:b")
    await store.close()


async def test_keys_of_redis_with_rows_of_other_windows_are_refused(redis_server: RedisServer) -> None:
    """Their positions are past records that would have no row under the other names."""
    where = target()
    for windows in (Windows.NEWEST, Windows.NEWEST, Windows.ALL):
        store = redis_server.store(replace(where, windows=windows))
        if windows is Windows.ALL:
            with pytest.raises(StoreMismatchError, match=r":\* have rows of another STATELOOP_SINK_WINDOWS: delete"):
                await store.open()
        else:
            await store.open()
        assert await store.positions() == {}
        await store.close()


async def test_a_row_of_redis_is_json_that_expires_with_its_window(redis_server: RedisServer) -> None:
    where, expires_at = target(Windows.ALL), 4_102_444_800_000_001
    store = redis_server.store(where)
    await store.open()
    key = f"{where.name}:a@2026-01-01T00:00:00.000000Z"
    row = ROW._replace(expires_at=expires_at)
    with redis_server.client() as client:
        await store.write(RowBatch((Step((), (row,)),), {0: Move(0, 1)}))
        assert client.hget(key, "value") == '{"a": 1}'
        assert client.pexpiretime(key) == expires_at // 1000 + 1
        await store.write(RowBatch((Step((), (row._replace(version=3, expires_at=None),)),), {0: Move(1, 2)}))
        assert client.pexpiretime(key) == -1
    await store.close()


async def test_a_table_of_another_shape_is_refused(postgresql_server: PostgresqlServer) -> None:
    where = target()
    store = postgresql_server.store(where)
    await store.open()
    await store.close()
    other = postgresql_server.store(replace(where, windows=Windows.ALL))
    with pytest.raises(StoreMismatchError, match=r"has no unique index on \(key, window_start\)"):
        await other.open()
    await other.close()
    with psycopg.connect(postgresql_server.url) as connection:
        connection.execute(sql.SQL("ALTER TABLE {} ALTER epoch TYPE integer").format(sql.Identifier(where.name)))
    with pytest.raises(StoreMismatchError, match="has not the columns epoch bigint"):
        await store.open()
    await store.close()


async def test_a_table_that_is_dropped_is_created_again_and_filled_from_the_beginning(
    postgresql_server: PostgresqlServer,
) -> None:
    where = target()
    store = postgresql_server.store(where)
    await store.open()
    assert await store.write(BATCH) == 2
    with psycopg.connect(postgresql_server.url) as connection:
        connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(where.name)))
    with pytest.raises(StoreUnavailableError, match="UndefinedTable"):
        await store.write(BATCH._replace(moves={0: Move(1, 2)}))
    await store.open()
    assert await store.positions() == {}
    assert await store.write(BATCH) == 2
    await store.close()


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
async def test_the_encoding_of_the_database_does_not_matter(postgresql_server: PostgresqlServer, encoding: str) -> None:
    database, where = f"of_{encoding.lower()}", target()
    with psycopg.connect(postgresql_server.url, autocommit=True) as connection:
        created = sql.SQL("CREATE DATABASE {} ENCODING {} TEMPLATE template0")
        connection.execute(created.format(sql.Identifier(database), encoding))
    url = postgresql_server.url.removesuffix("/postgres") + f"/{database}"
    row = ROW._replace(key="é", value='{"a": "é"}'.encode())
    for at in range(2):  # the second time it finds its own table
        store = PostgresqlStore(url, where)
        await store.open()
        assert await store.positions() == ({0: 1} if at else {})
        assert await store.write(RowBatch((Step((), (row._replace(version=at),)),), {0: Move(at, at + 1)})) == 1
        await store.close()
    with psycopg.connect(url, client_encoding="UTF8") as connection:
        found = connection.execute(sql.SQL("SELECT key, version, value FROM {}").format(sql.Identifier(where.name)))
        assert found.fetchall() == [("é", 1, {"a": "é"})]


async def test_a_text_that_the_encoding_of_the_database_has_not_is_refused(postgresql_server: PostgresqlServer) -> None:
    with psycopg.connect(postgresql_server.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE of_few ENCODING LATIN1 TEMPLATE template0")
    store = PostgresqlStore(postgresql_server.url.removesuffix("/postgres") + "/of_few", target())
    await store.open()
    with pytest.raises(RowsRefusedError, match="UntranslatableCharacter"):
        await store.write(RowBatch((Step((), (ROW, ROW._replace(key="\u65e5"))),), {0: Move(0, 1)}))
    await store.close()


async def test_a_role_needs_no_right_to_create_once_the_tables_are_there(postgresql_server: PostgresqlServer) -> None:
    where = target()
    owner = postgresql_server.store(where)
    await owner.open()
    await owner.close()
    with psycopg.connect(postgresql_server.url) as connection:
        connection.execute("DROP ROLE IF EXISTS writer")
        connection.execute("CREATE ROLE writer LOGIN")
        for table in (where.name, "stateloop_positions"):
            grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON {} TO writer"
            connection.execute(sql.SQL(grant).format(sql.Identifier(table)))
    store = PostgresqlStore(postgresql_server.url.replace("stateloop@", "writer@"), where)
    await store.open()
    assert await store.write(BATCH) == 2
    assert await store.remove_expired(NOW_US) == 0
    await store.close()
    with psycopg.connect(postgresql_server.url) as connection:
        connection.execute("DROP OWNED BY writer; DROP ROLE writer")


async def test_a_constraint_of_the_operator_refuses_its_rows_only(postgresql_server: PostgresqlServer) -> None:
    where = target()
    store = postgresql_server.store(where)
    await store.open()
    check = "ALTER TABLE {} ADD CHECK (key <> 'b')"
    with psycopg.connect(postgresql_server.url) as connection:
        connection.execute(sql.SQL(check).format(sql.Identifier(where.name)))
    rows = (ROW, ROW._replace(key="b"), ROW._replace(key="nul\0"))
    with pytest.raises(RowsRefusedError) as error:
        await store.write(RowBatch((Step((Deletion("nul\0", None),), rows),), {0: Move(0, 1)}))
    assert {one.row.key for one in error.value.refused} == {"b", "nul\0"}
    await store.close()


async def test_of_a_partitioned_table_only_expired_rows_are_removed(postgresql_server: PostgresqlServer) -> None:
    """Rows of two partitions have the same place, each in its own file."""
    where = target(Windows.ALL)
    name, start = sql.Identifier(where.name), NOW_US - DAY_US
    store = postgresql_server.store(where)
    await store.open()
    with psycopg.connect(postgresql_server.url) as connection:
        connection.execute(sql.SQL("ALTER TABLE {} RENAME TO {}").format(name, sql.Identifier(f"{where.name}-like")))
        like, first, rest = (sql.Identifier(f"{where.name}-{part}") for part in ("like", "first", "rest"))
        created = "CREATE TABLE {} (LIKE {} INCLUDING ALL) PARTITION BY RANGE (window_start)"
        connection.execute(sql.SQL(created).format(name, like))
        bound = sql.Literal(datetime.fromtimestamp((NOW_US - 1) / 1_000_000, UTC))
        before = "CREATE TABLE {} PARTITION OF {} FOR VALUES FROM (MINVALUE) TO ({})"
        connection.execute(sql.SQL(before).format(first, name, bound))
        connection.execute(sql.SQL("CREATE TABLE {} PARTITION OF {} DEFAULT").format(rest, name))
    expired, live = ROW._replace(window_start=start, expires_at=NOW_US), ROW._replace(expires_at=NOW_US + DAY_US)
    await store.open()
    await store.write(RowBatch((Step((), (expired, live)),), {0: Move(0, 2)}))
    assert await store.remove_expired(NOW_US) == 1
    assert [row.window_start for row in await postgresql_server.rows(where)] == [NOW_US]
    await store.close()


def plated(key: str, plate: str) -> Row:
    return ROW._replace(key=key, value=f'{{"plate": "{plate}"}}'.encode())


@pytest.mark.parametrize(
    ("rows", "refused"),
    [
        ((plated("a", "X"), plated("b", "X"), plated("c", "Z")), {"b"}),
        ((plated("new", "OLD"), plated("bad", "\\u0000")), {"bad"}),
        ((plated("new", "OLD"), ROW._replace(key="late", epoch=99)), {"late"}),
    ],
    ids=["two rows of one batch", "a value of a deleted row", "a constraint that the commit checks"],
)
async def test_a_constraint_over_rows_refuses_no_other_row(
    postgresql_server: PostgresqlServer, rows: tuple[Row, ...], refused: set[str]
) -> None:
    where = target()
    store = postgresql_server.store(where)
    await store.open()
    table, epochs = sql.Identifier(where.name), sql.Identifier(f"{where.name}_epochs")
    with psycopg.connect(postgresql_server.url) as connection:
        connection.execute(sql.SQL("CREATE UNIQUE INDEX ON {} ((value->>'plate'))").format(table))
        connection.execute(sql.SQL("CREATE TABLE {} (epoch bigint PRIMARY KEY)").format(epochs))
        connection.execute(sql.SQL("INSERT INTO {} VALUES ({})").format(epochs, ROW.epoch))
        refers = "ALTER TABLE {} ADD FOREIGN KEY (epoch) REFERENCES {} DEFERRABLE INITIALLY DEFERRED"
        connection.execute(sql.SQL(refers).format(table, epochs))
    await store.write(RowBatch((Step((), (plated("old", "OLD"),)),), {0: Move(0, 1)}))
    with pytest.raises(RowsRefusedError) as error:
        await store.write(RowBatch((Step((Deletion("old", None),), rows),), {0: Move(1, 2)}))
    assert {one.row.key for one in error.value.refused} == refused
    accepted = tuple(row for row in rows if row.key not in refused)
    assert await store.write(RowBatch((Step((Deletion("old", None),), accepted),), {0: Move(1, 2)})) == 1 + len(
        accepted
    )
    await store.close()


async def test_a_row_that_is_deleted_and_written_again_may_be_referred_to(postgresql_server: PostgresqlServer) -> None:
    """Beside a row that another constraint of the commit refuses."""
    where = target()
    store = postgresql_server.store(where)
    await store.open()
    assert await store.write(BATCH) == 2
    table, others = sql.Identifier(where.name), sql.Identifier(f"{where.name}_others")
    with psycopg.connect(postgresql_server.url) as connection:
        refers = "CREATE TABLE {} (key text REFERENCES {} DEFERRABLE INITIALLY DEFERRED, epoch bigint UNIQUE)"
        connection.execute(sql.SQL(refers).format(others, table))
        connection.execute(sql.SQL("INSERT INTO {} VALUES ({}, {})").format(others, ROW.key, ROW.epoch))
        referred = "ALTER TABLE {} ADD FOREIGN KEY (epoch) REFERENCES {} (epoch) DEFERRABLE INITIALLY DEFERRED"
        connection.execute(sql.SQL(referred).format(table, others))
    deleted, again = Step((Deletion(ROW.key, None),), ()), Step((), (ROW, ROW._replace(key="late", epoch=99)))
    with pytest.raises(RowsRefusedError) as error:
        await store.write(RowBatch((deleted, again), {0: Move(1, 2)}))
    assert [one.row.key for one in error.value.refused] == ["late"]
    assert await store.write(RowBatch((deleted, Step((), (ROW,))), {0: Move(1, 2)})) == 2
    with pytest.raises(StoreUnavailableError, match="ForeignKeyViolation"):
        await store.write(RowBatch((deleted,), {0: Move(2, 3)}))
    await store.close()


async def test_a_trigger_that_names_no_constraint_refuses_its_rows_only(postgresql_server: PostgresqlServer) -> None:
    where = target()
    store = postgresql_server.store(where)
    await store.open()
    table, refuse = sql.Identifier(where.name), sql.Identifier(f"{where.name}_refuse")
    body = "BEGIN RAISE check_violation; END"
    with psycopg.connect(postgresql_server.url) as connection:
        function = "CREATE FUNCTION {}() RETURNS trigger LANGUAGE plpgsql AS {}"
        connection.execute(sql.SQL(function).format(refuse, body))
        trigger = """CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON {} DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
        WHEN (new.key = 'b') EXECUTE FUNCTION {}()"""
        connection.execute(sql.SQL(trigger).format(table, refuse))
    with pytest.raises(RowsRefusedError) as error:
        await store.write(BATCH)
    assert [one.row.key for one in error.value.refused] == ["b"]
    await store.close()


@pytest.mark.parametrize("kind", [RedisStore, PostgresqlStore])
@pytest.mark.parametrize(
    "rest", ["://user:hunter2/x@127.0.0.1:1/0", "://user:hunter2@127.0.0.1:1/0", "://%zz:hunter2@h:p"]
)
async def test_no_message_has_the_password(kind: type[RedisStore | PostgresqlStore], rest: str) -> None:
    scheme = "redis" if kind is RedisStore else "postgresql"
    with pytest.raises(StateloopError) as error:
        await kind(f"{scheme}{rest}", target()).open()
    assert "hunter2" not in "".join(traceback.format_exception(error.value))


def test_a_name_that_postgresql_would_cut_is_refused() -> None:
    with pytest.raises(StoreMismatchError, match="63 bytes"):
        PostgresqlStore("postgresql://host/db", Target("x" * 64, "topic", Windows.NEWEST))
