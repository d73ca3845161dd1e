"""Official Python clients against a local BigQuery, unmodified. One function for each step of the suite."""

import datetime
import decimal
import io
import os
import sys

import grpc
from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import NotFound
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery, bigquery_storage_v1
from google.cloud.bigquery_storage_v1 import types
from google.cloud.bigquery_storage_v1.services.big_query_read.transports import BigQueryReadGrpcTransport
from google.cloud.bigquery_storage_v1.services.big_query_write.transports import BigQueryWriteGrpcTransport
from google.cloud.bigquery_storage_v1.writer import AppendRowsStream
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

REST, GRPC = os.environ["LOCAL_REST"], os.environ["LOCAL_GRPC"]
PROJECT, DATASET = os.environ["LOCAL_PROJECT"], os.environ["LOCAL_DATASET"]
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


def order_class():
    """The class of protobuf messages that rows are written as."""
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", syntax="proto2")
    message = file.message_type.add(name="Order")
    field = descriptor_pb2.FieldDescriptorProto
    for number, (name, kind) in enumerate([("sku", field.TYPE_STRING), ("count", field.TYPE_INT64),
                                           ("price", field.TYPE_STRING), ("placed", field.TYPE_INT64)], 1):
        message.field.add(name=name, number=number, type=kind, label=field.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Order"))


Order = order_class()


def rows(prefix, first, count):
    """An append of orders prefix-first, prefix-first+1, …"""
    micros = int(PLACED.timestamp()) * 1_000_000 + PLACED.microsecond
    data = types.ProtoRows()
    for i in range(first, first + count):
        data.serialized_rows.append(Order(sku=f"{prefix}-{i}", count=i, price="2.5", placed=micros).SerializeToString())
    return types.AppendRowsRequest(proto_rows=types.AppendRowsRequest.ProtoData(rows=data))


def open_stream(name):
    schema = types.ProtoSchema()
    Order.DESCRIPTOR.CopyToProto(schema.proto_descriptor)
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
    "read Avro": read_avro,
    "read Arrow": read_arrow,
    "query": query,
    "delete": delete,
}

for name, step in STEPS.items():
    try:
        step()
        print(name, "ok", sep="\t", flush=True)
    except Exception as e:  # whatever it is, the next step is tried too
        print(name, " ".join(f"{type(e).__name__}: {e}".split()), sep="\t", flush=True)
