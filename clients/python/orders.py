"""Official Python clients against a local BigQuery, unmodified. One function for each step of the suite."""

import datetime
import decimal
import io
import json
import os

import grpc
import pyarrow
import pyarrow.parquet
from dateutil.relativedelta import relativedelta
from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import AlreadyExists, NotFound, PreconditionFailed
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery, bigquery_storage_v1, storage
from google.cloud.bigquery.table import PrimaryKey, TableConstraints
from google.cloud.bigquery_storage_v1 import types
from google.cloud.bigquery_storage_v1.services.big_query_read.transports import BigQueryReadGrpcTransport
from google.cloud.bigquery_storage_v1.services.big_query_write.transports import BigQueryWriteGrpcTransport
from google.cloud.bigquery_storage_v1.writer import AppendRowsStream
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from googleapiclient import discovery

REST, GRPC, STORAGE = os.environ["LOCAL_REST"], os.environ["LOCAL_GRPC"], os.environ["LOCAL_STORAGE"]
PROJECT, DATASET = os.environ["LOCAL_PROJECT"], os.environ["LOCAL_DATASET"]
BUCKET = DATASET
TABLE = f"projects/{PROJECT}/datasets/{DATASET}/tables/orders"

# How Python is pointed at the local service.
client = bigquery.Client(
    project=PROJECT,
    credentials=AnonymousCredentials(),
    client_options=ClientOptions(api_endpoint=f"http://{REST}"),
)
channel = grpc.insecure_channel(GRPC)
writer = bigquery_storage_v1.BigQueryWriteClient(transport=BigQueryWriteGrpcTransport(channel=channel))
reader = bigquery_storage_v1.BigQueryReadClient(transport=BigQueryReadGrpcTransport(channel=channel))
objects = storage.Client(
    project=PROJECT,
    credentials=AnonymousCredentials(),
    client_options=ClientOptions(api_endpoint=f"http://{STORAGE}"),
)

SCHEMA = [
    bigquery.SchemaField("sku", "STRING", mode="REQUIRED"),
    bigquery.SchemaField("count", "INT64"),
    bigquery.SchemaField("price", "NUMERIC"),
    bigquery.SchemaField("placed", "TIMESTAMP"),
]
PLACED = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.timezone.utc)


def want(what, got, expected):
    if got != expected:
        raise AssertionError(f"{what}: got {got!r}, want {expected!r}")


def stored(prefix):
    """How many orders begin with a prefix."""
    config = bigquery.QueryJobConfig(query_parameters=[bigquery.ScalarQueryParameter("prefix", "STRING", prefix)])
    sql = f"SELECT COUNT(*) AS n FROM `{DATASET}.orders` WHERE STARTS_WITH(sku, @prefix)"
    return next(iter(client.query_and_wait(sql, job_config=config))).n


def create():
    client.create_dataset(DATASET)
    client.create_table(bigquery.Table(f"{PROJECT}.{DATASET}.orders", schema=SCHEMA))
    got = client.get_table(f"{DATASET}.orders")
    want("columns", [(f.name, f.mode) for f in got.schema],
         [("sku", "REQUIRED"), ("count", "NULLABLE"), ("price", "NULLABLE"), ("placed", "NULLABLE")])
    want("tables", [t.table_id for t in client.list_tables(DATASET)], ["orders"])


def message_class(name, **columns):
    """The class of protobuf messages that rows are written as."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", syntax="proto2")
    message = file.message_type.add(name=name)
    for number, (column, kind) in enumerate(columns.items(), 1):
        message.field.add(name=column, number=number, type=kind, label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


STRING, INT64 = descriptor_pb2.FieldDescriptorProto.TYPE_STRING, descriptor_pb2.FieldDescriptorProto.TYPE_INT64
Order = message_class("Order", sku=STRING, count=INT64, price=STRING, placed=INT64)
Change = message_class("Change", sku=STRING, count=INT64, _CHANGE_TYPE=STRING, _CHANGE_SEQUENCE_NUMBER=STRING)


def append(*messages):
    data = types.ProtoRows(serialized_rows=[m.SerializeToString() for m in messages])
    return types.AppendRowsRequest(proto_rows=types.AppendRowsRequest.ProtoData(rows=data))


def rows(prefix, first, count):
    """An append of orders prefix-first, prefix-first+1, …"""
    micros = int(PLACED.timestamp()) * 1_000_000 + PLACED.microsecond
    return append(*(Order(sku=f"{prefix}-{i}", count=i, price="2.5", placed=micros) for i in range(first, first + count)))


def open_stream(name, message=Order):
    schema = types.ProtoSchema()
    message.DESCRIPTOR.CopyToProto(schema.proto_descriptor)
    first = types.AppendRowsRequest(write_stream=name)
    first.proto_rows.writer_schema = schema
    return AppendRowsStream(writer, first)


def created_stream(kind):
    return writer.create_write_stream(parent=TABLE, write_stream=types.WriteStream(type_=kind)).name


def write_default():
    stream = open_stream(f"{TABLE}/streams/_default")
    for first in (1, 3):
        stream.send(rows("default", first, 2)).result(timeout=30)
    stream.close()
    want("rows", stored("default-"), 4)


def write_committed():
    stream = open_stream(created_stream(types.WriteStream.Type.COMMITTED))
    for offset, count in ((0, 1), (1, 2), (3, 1)):
        request = rows("committed", offset + 1, count)
        request.offset = offset
        want("offset", stream.send(request).result(timeout=30).append_result.offset, offset)
    try:
        stream.send(request).result(timeout=30)
        raise AssertionError("an offset was written twice")
    except AlreadyExists:
        pass
    stream.close()
    want("rows", stored("committed-"), 4)


def write_buffered():
    name = created_stream(types.WriteStream.Type.BUFFERED)
    stream = open_stream(name)
    stream.send(rows("buffered", 1, 4)).result(timeout=30)
    stream.close()
    want("rows before a flush", stored("buffered-"), 0)
    want("flushed", writer.flush_rows(types.FlushRowsRequest(write_stream=name, offset=2)).offset, 2)
    want("rows after a flush", stored("buffered-"), 3)


def write_pending():
    name = created_stream(types.WriteStream.Type.PENDING)
    stream = open_stream(name)
    stream.send(rows("pending", 1, 4)).result(timeout=30)
    stream.close()
    want("finalized", writer.finalize_write_stream(name=name).row_count, 4)
    want("rows before the commit", stored("pending-"), 0)
    answer = writer.batch_commit_write_streams(
        types.BatchCommitWriteStreamsRequest(parent=TABLE, write_streams=[name]))
    want("errors", list(answer.stream_errors), [])
    want("rows after the commit", stored("pending-"), 4)


def write_changes():
    table = bigquery.Table(f"{PROJECT}.{DATASET}.stock", schema=SCHEMA[:2])
    table.table_constraints = TableConstraints(primary_key=PrimaryKey(columns=["sku"]), foreign_keys=None)
    client.create_table(table)
    stream = open_stream(TABLE.replace("orders", "stock") + "/streams/_default", Change)
    change = lambda sku, count, kind, sequence: Change(sku=sku, count=count, _CHANGE_TYPE=kind, _CHANGE_SEQUENCE_NUMBER=sequence)
    stream.send(append(
        change("tea", 1, "UPSERT", "1"), change("cup", 1, "UPSERT", "1"),
        change("tea", 3, "UPSERT", "3"), change("tea", 2, "UPSERT", "2"), change("cup", None, "DELETE", "2"),
    )).result(timeout=30)
    stream.close()
    want("rows", [r.values() for r in client.query_and_wait(f"SELECT * FROM `{DATASET}.stock`")], [("tea", 3)])
    client.delete_table(table)


def read(data_format, decode):
    session = reader.create_read_session(
        parent=f"projects/{PROJECT}",
        read_session=types.ReadSession(
            table=TABLE,
            data_format=data_format,
            read_options=types.ReadSession.TableReadOptions(
                selected_fields=["sku", "price", "placed"], row_restriction="STARTS_WITH(sku, 'default-')"),
        ),
        max_stream_count=2,
    )
    found = []
    for stream in session.streams:
        found += decode(reader.read_rows(stream.name), session)
    found = sorted((row["sku"], row["price"], row["placed"]) for row in found)
    want("rows", found, [(f"default-{i}", decimal.Decimal("2.5"), PLACED) for i in range(1, 5)])


def read_avro():
    read(types.DataFormat.AVRO, lambda stream, session: list(stream.rows(session)))


def read_arrow():
    read(types.DataFormat.ARROW, lambda stream, session: stream.to_arrow(session).to_pylist())


def query():
    sql = f"SELECT SUM(count) AS n, MAX(price) AS price, MAX(placed) AS placed FROM `{DATASET}.orders` WHERE sku LIKE @like"
    config = bigquery.QueryJobConfig(query_parameters=[bigquery.ScalarQueryParameter("like", "STRING", "default-%")])
    got = list(client.query(sql, job_config=config).result())
    want("result", [(r.n, r.price, r.placed) for r in got], [(10, decimal.Decimal("2.5"), PLACED)])
    arrow = client.query(sql, job_config=config).to_arrow(bqstorage_client=reader)
    want("result as Arrow", arrow.to_pylist(), [{"n": 10, "price": decimal.Decimal("2.5"), "placed": PLACED}])


def every_type():
    """Values of every type, in JSON over REST and as Arrow."""
    sql = """SELECT TRUE AS truth, 1.5 AS half, b'\\x00\\xff' AS raw, BIGNUMERIC '1e-38' AS tiny, DATE '2026-01-02' AS day,
        TIME '03:04:05.000006' AS hour, DATETIME '2026-01-02 03:04:05' AS civil, INTERVAL 3 DAY AS wait,
        RANGE<DATE> '[2026-01-02, UNBOUNDED)' AS span, ST_GEOGPOINT(1, 2) AS place, [1, 2] AS list,
        [STRUCT('tea' AS name, 2 AS count)] AS records, CAST(NULL AS STRING) AS nothing, JSON '{"a": [1, null]}' AS doc"""
    day = datetime.date(2026, 1, 2)
    expected = {
        "truth": True, "half": 1.5, "raw": b"\0\xff", "tiny": decimal.Decimal("1e-38"), "day": day,
        "hour": datetime.time(3, 4, 5, 6), "civil": datetime.datetime(2026, 1, 2, 3, 4, 5), "wait": relativedelta(days=3),
        "span": {"start": day, "end": None}, "place": "POINT(1 2)", "list": [1, 2],
        "records": [{"name": "tea", "count": 2}], "nothing": None, "doc": {"a": [1, None]},
    }
    want("row", [dict(r.items()) for r in client.query_and_wait(sql)], [expected])
    expected |= {"doc": '{"a":[1,null]}', "wait": pyarrow.MonthDayNano([0, 3, 0])}
    want("row as Arrow", client.query(sql).to_arrow(bqstorage_client=reader).to_pylist(), [expected])


def write_arrow():
    batch = pyarrow.RecordBatch.from_pylist(
        [{"sku": f"arrow-{i}", "count": i, "price": decimal.Decimal("2.5"), "placed": PLACED} for i in (1, 2)],
        pyarrow.schema([("sku", pyarrow.utf8()), ("count", pyarrow.int64()), ("price", pyarrow.decimal128(38, 9)),
                        ("placed", pyarrow.timestamp("us", "UTC"))]))
    first = types.AppendRowsRequest(write_stream=f"{TABLE}/streams/_default")
    first.arrow_rows.writer_schema.serialized_schema = batch.schema.serialize().to_pybytes()
    stream = AppendRowsStream(writer, first)
    request = types.AppendRowsRequest()
    request.arrow_rows.rows.serialized_record_batch = batch.serialize().to_pybytes()
    stream.send(request).result(timeout=30)
    stream.close()
    want("rows", stored("arrow-"), 2)


def update():
    table, stale = client.get_table(f"{DATASET}.orders"), client.get_table(f"{DATASET}.orders")
    table.schema = [*table.schema, bigquery.SchemaField("note", "STRING")]
    client.update_table(table, ["schema"])
    want("columns", [f.name for f in client.get_table(f"{DATASET}.orders").schema], ["sku", "count", "price", "placed", "note"])
    stale.description = "never"
    try:
        client.update_table(stale, ["description"])
        raise AssertionError("an update of what has changed since was taken")
    except PreconditionFailed:
        pass


def list_rows():
    pages = client.list_rows(f"{DATASET}.orders", selected_fields=SCHEMA[:1], page_size=4).pages
    found = [[row.sku for row in page] for page in pages]
    want("rows of a page, at most", max(map(len, found)), 4)
    found = sorted(sku for page in found for sku in page if sku.startswith("default-"))
    want("rows", found, [f"default-{i}" for i in range(1, 5)])


def insert_all():
    orders = [{"sku": f"insert-{i}", "count": i, "price": "2.5", "placed": PLACED.isoformat()} for i in (1, 2)]
    for _ in range(2):  # the second time, rows are known by their ids
        want("errors", client.insert_rows_json(f"{DATASET}.orders", orders, row_ids=["first", "second"]), [])
    want("rows", stored("insert-"), 2)
    errors = client.insert_rows_json(f"{DATASET}.orders", [{"sku": "insert-3", "count": "many"}])
    want("reasons", [(e["index"], e["errors"][0]["reason"]) for e in errors], [(0, "invalid")])


def ddl():
    for sql in (
        f"CREATE TABLE `{DATASET}.made` (sku STRING NOT NULL, count INT64) CLUSTER BY sku",
        f"INSERT INTO `{DATASET}.made` (sku, count) VALUES ('tea', 1)",
        f"ALTER TABLE `{DATASET}.made` ADD COLUMN note STRING",
        f"CREATE TABLE `{DATASET}.chosen` AS SELECT sku, note FROM `{DATASET}.made`",
        f"DROP TABLE `{DATASET}.made`",
    ):
        client.query_and_wait(sql)
    want("rows", [r.values() for r in client.list_rows(client.get_table(f"{DATASET}.chosen"))], [("tea", None)])
    want("tables", sorted(t.table_id for t in client.list_tables(DATASET)), ["chosen", "orders"])


def dml():
    table = f"`{DATASET}.orders`"
    for sql, affected in (
        (f"INSERT INTO {table} (sku, count) VALUES ('dml-1', 1), ('dml-2', 2)", 2),
        (f"UPDATE {table} SET count = count + 10 WHERE STARTS_WITH(sku, 'dml-')", 2),
        (f"DELETE FROM {table} WHERE sku = 'dml-1'", 1),
    ):
        job = client.query(sql)
        job.result()
        want(sql, job.num_dml_affected_rows, affected)
    left = client.query_and_wait(f"SELECT sku, count FROM {table} WHERE STARTS_WITH(sku, 'dml-') ORDER BY sku")
    want("rows", [(r.sku, r["count"]) for r in left], [("dml-2", 12)])


LINES = "".join(json.dumps({"sku": f"load-{i}", "count": i, "price": "2.5", "placed": PLACED.isoformat()}) + "\n" for i in range(3))


def cloud_storage():
    bucket = objects.create_bucket(BUCKET)
    bucket.blob("orders.ndjson").upload_from_string(LINES, if_generation_match=0)
    want("object", bucket.blob("orders.ndjson").download_as_text(), LINES)
    content = bytes(range(256)) * 3000
    large = bucket.blob("folder/large", chunk_size=256 * 1024)  # an upload in three parts that can be resumed
    large.upload_from_file(io.BytesIO(content), size=len(content))
    want("large object", large.download_as_bytes() == content, True)
    want("objects", [o.name for o in objects.list_blobs(BUCKET)], ["folder/large", "orders.ndjson"])
    large.delete()
    want("after a delete", large.exists(), False)


def load():
    config = bigquery.LoadJobConfig(schema=SCHEMA, source_format="NEWLINE_DELIMITED_JSON")
    job = client.load_table_from_uri(f"gs://{BUCKET}/*.ndjson", f"{DATASET}.loaded", job_config=config)
    job.result()
    want("rows", (job.output_rows, client.get_table(f"{DATASET}.loaded").num_rows), (3, 3))
    rows = client.list_rows(f"{DATASET}.loaded", selected_fields=SCHEMA)
    want("content", sorted(r.values() for r in rows),
         [(f"load-{i}", i, decimal.Decimal("2.5"), PLACED) for i in range(3)])


def load_file():
    """Content is sent along with the job."""
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"sku": ["file-1", "file-2"], "count": [1, 2]}), file)
    config = bigquery.LoadJobConfig(source_format="PARQUET")
    job = client.load_table_from_file(file, f"{DATASET}.from_file", rewind=True, job_config=config)
    job.result()
    want("rows", job.output_rows, 2)
    rows = client.query_and_wait(f"SELECT * FROM `{DATASET}.from_file` ORDER BY sku")
    want("content", [r.values() for r in rows], [("file-1", 1), ("file-2", 2)])


def copy():
    client.copy_table(f"{DATASET}.from_file", f"{DATASET}.copied").result()
    want("rows", client.get_table(f"{DATASET}.copied").num_rows, 2)


def extract():
    config = bigquery.ExtractJobConfig(destination_format="NEWLINE_DELIMITED_JSON")
    client.extract_table(f"{DATASET}.copied", f"gs://{BUCKET}/out/copied-*.json", job_config=config).result()
    text = "".join(o.download_as_text() for o in objects.list_blobs(BUCKET, prefix="out/"))
    rows = sorted((row["sku"], row["count"]) for row in map(json.loads, text.splitlines()))
    want("rows", rows, [("file-1", "1"), ("file-2", "2")])


def discovery_document():
    """What `bq --api` does first."""
    service = discovery.build(
        "bigquery", "v2", credentials=AnonymousCredentials(), static_discovery=False,
        discoveryServiceUrl=f"http://{REST}/discovery/v1/apis/{{api}}/{{apiVersion}}/rest")
    tables = service.tables().list(projectId=PROJECT, datasetId=DATASET).execute()
    want("orders is listed", "orders" in [t["tableReference"]["tableId"] for t in tables["tables"]], True)


def delete():
    client.delete_table(f"{DATASET}.orders")
    try:
        client.get_table(f"{DATASET}.orders")
        raise AssertionError("the table is still there")
    except NotFound:
        pass
    client.delete_dataset(DATASET, delete_contents=True)
    want("datasets", [d.dataset_id for d in client.list_datasets() if d.dataset_id == DATASET], [])


STEPS = {
    "create": create,
    "default stream": write_default,
    "committed stream": write_committed,
    "buffered stream": write_buffered,
    "pending stream": write_pending,
    "changes": write_changes,
    "Arrow rows": write_arrow,
    "read Avro": read_avro,
    "read Arrow": read_arrow,
    "query": query,
    "every type": every_type,
    "list rows": list_rows,
    "update": update,
    "insertAll": insert_all,
    "DDL": ddl,
    "DML": dml,
    "Cloud Storage": cloud_storage,
    "load": load,
    "load a file": load_file,
    "copy": copy,
    "extract": extract,
    "discovery": discovery_document,
    "delete": delete,
}

for name, step in STEPS.items():
    try:
        step()
        print(name, "ok", sep="\t", flush=True)
    except Exception as e:  # whatever it is, the next step is tried too
        print(name, " ".join(f"{type(e).__name__}: {e}".split()), sep="\t", flush=True)
