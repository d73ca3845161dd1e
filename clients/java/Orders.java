import com.google.api.gax.core.NoCredentialsProvider;
import com.google.api.gax.grpc.GrpcTransportChannel;
import com.google.api.gax.rpc.FixedTransportChannelProvider;
import com.google.api.gax.rpc.TransportChannelProvider;
import com.google.cloud.NoCredentials;
import com.google.cloud.bigquery.BigQuery;
import com.google.cloud.bigquery.BigQuery.DatasetDeleteOption;
import com.google.cloud.bigquery.BigQueryOptions;
import com.google.cloud.bigquery.DatasetId;
import com.google.cloud.bigquery.DatasetInfo;
import com.google.cloud.bigquery.Field;
import com.google.cloud.bigquery.FieldValueList;
import com.google.cloud.bigquery.QueryJobConfiguration;
import com.google.cloud.bigquery.QueryParameterValue;
import com.google.cloud.bigquery.Schema;
import com.google.cloud.bigquery.StandardSQLTypeName;
import com.google.cloud.bigquery.StandardTableDefinition;
import com.google.cloud.bigquery.TableId;
import com.google.cloud.bigquery.TableInfo;
import com.google.cloud.bigquery.storage.v1.AppendRowsResponse;
import com.google.cloud.bigquery.storage.v1.BatchCommitWriteStreamsRequest;
import com.google.cloud.bigquery.storage.v1.BigQueryReadClient;
import com.google.cloud.bigquery.storage.v1.BigQueryReadSettings;
import com.google.cloud.bigquery.storage.v1.BigQueryWriteClient;
import com.google.cloud.bigquery.storage.v1.BigQueryWriteSettings;
import com.google.cloud.bigquery.storage.v1.CreateReadSessionRequest;
import com.google.cloud.bigquery.storage.v1.DataFormat;
import com.google.cloud.bigquery.storage.v1.FlushRowsRequest;
import com.google.cloud.bigquery.storage.v1.JsonStreamWriter;
import com.google.cloud.bigquery.storage.v1.ReadRowsRequest;
import com.google.cloud.bigquery.storage.v1.ReadRowsResponse;
import com.google.cloud.bigquery.storage.v1.ReadSession;
import com.google.cloud.bigquery.storage.v1.WriteStream;
import com.google.protobuf.Int64Value;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import java.math.BigDecimal;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.VectorLoader;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ReadChannel;
import org.apache.arrow.vector.ipc.message.MessageSerializer;
import org.apache.arrow.vector.util.ByteArrayReadableSeekableByteChannel;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;
import org.json.JSONArray;
import org.json.JSONObject;

/** Official Java clients against a local BigQuery, unmodified. One method for each step of the suite. */
final class Orders {
  static final String PROJECT = System.getenv("LOCAL_PROJECT");
  static final String DATASET = System.getenv("LOCAL_DATASET");
  static final String PATH = "projects/" + PROJECT + "/datasets/" + DATASET + "/tables/orders";
  static final TableId TABLE = TableId.of(PROJECT, DATASET, "orders");
  static final Instant PLACED = Instant.parse("2026-01-02T03:04:05.678901Z");

  final BigQuery bigquery;
  final BigQueryWriteClient writer;
  final BigQueryReadClient reader;

  /** How Java is pointed at the local service. */
  Orders(ManagedChannel plaintext) throws Exception {
    bigquery =
        BigQueryOptions.newBuilder()
            .setProjectId(PROJECT)
            .setHost("http://" + System.getenv("LOCAL_REST"))
            .setCredentials(NoCredentials.getInstance())
            .build()
            .getService();
    TransportChannelProvider channel =
        FixedTransportChannelProvider.create(GrpcTransportChannel.create(plaintext));
    writer =
        BigQueryWriteClient.create(
            BigQueryWriteSettings.newBuilder()
                .setTransportChannelProvider(channel)
                .setCredentialsProvider(NoCredentialsProvider.create())
                .build());
    reader =
        BigQueryReadClient.create(
            BigQueryReadSettings.newBuilder()
                .setTransportChannelProvider(channel)
                .setCredentialsProvider(NoCredentialsProvider.create())
                .build());
  }

  interface Step {
    void run() throws Exception;
  }

  public static void main(String[] args) throws Exception {
    ManagedChannel plaintext =
        ManagedChannelBuilder.forTarget(System.getenv("LOCAL_GRPC")).usePlaintext().build();
    Orders orders = new Orders(plaintext);
    Map<String, Step> steps = new LinkedHashMap<>();
    steps.put("create", orders::create);
    steps.put("default stream", orders::writeDefault);
    steps.put("read Avro", orders::readAvro);
    steps.put("read Arrow", orders::readArrow);
    steps.put("query", orders::query);
    steps.put("delete", orders::delete);
    for (Map.Entry<String, Step> step : steps.entrySet()) {
      String result = "ok";
      try {
        step.getValue().run();
      } catch (Exception | AssertionError e) {
        result = e.toString().replaceAll("\\s+", " ");
      }
      System.out.println(step.getKey() + "\t" + result);
    }
    System.exit(0); // the clients' threads would keep it
  }

  static void want(String what, Object got, Object expected) {
    if (!Objects.equals(got, expected)) {
      throw new AssertionError(what + ": got " + got + ", want " + expected);
    }
  }

  /** How many orders begin with a prefix. */
  long stored(String prefix) throws Exception {
    String sql = "SELECT COUNT(*) AS n FROM `" + DATASET + ".orders` WHERE STARTS_WITH(sku, @prefix)";
    QueryJobConfiguration query =
        QueryJobConfiguration.newBuilder(sql)
            .addNamedParameter("prefix", QueryParameterValue.string(prefix))
            .build();
    return bigquery.query(query).iterateAll().iterator().next().get("n").getLongValue();
  }

  void create() {
    bigquery.create(DatasetInfo.of(DATASET));
    Schema schema =
        Schema.of(
            Field.newBuilder("sku", StandardSQLTypeName.STRING).setMode(Field.Mode.REQUIRED).build(),
            Field.of("count", StandardSQLTypeName.INT64),
            Field.of("price", StandardSQLTypeName.NUMERIC),
            Field.of("placed", StandardSQLTypeName.TIMESTAMP));
    bigquery.create(TableInfo.of(TABLE, StandardTableDefinition.of(schema)));
    List<String> columns = new ArrayList<>();
    for (Field f : bigquery.getTable(TABLE).getDefinition().getSchema().getFields()) {
      columns.add(f.getName());
    }
    want("columns", columns, List.of("sku", "count", "price", "placed"));
  }

  /** The orders prefix-first, prefix-first+1, … */
  static JSONArray rows(String prefix, int first, int count) {
    JSONArray rows = new JSONArray();
    for (int i = first; i < first + count; i++) {
      JSONObject row = new JSONObject();
      row.put("sku", prefix + "-" + i).put("count", i).put("price", new BigDecimal("2.5"));
      row.put("placed", ChronoUnit.MICROS.between(Instant.EPOCH, PLACED));
      rows.put(row);
    }
    return rows;
  }

  /** A writer of JSON on a stream or, with a table's name, on its default stream. It takes the schema from the service. */
  JsonStreamWriter open(String stream) throws Exception {
    return JsonStreamWriter.newBuilder(stream, writer).build();
  }

  String created(WriteStream.Type type) {
    return writer.createWriteStream(PATH, WriteStream.newBuilder().setType(type).build()).getName();
  }

  void writeDefault() throws Exception {
    try (JsonStreamWriter rows = open(PATH)) {
      rows.append(rows("default", 1, 2)).get();
      rows.append(rows("default", 3, 2)).get();
    }
    want("rows", stored("default-"), 4L);
  }

  void writeCommitted() throws Exception {
    try (JsonStreamWriter rows = open(created(WriteStream.Type.COMMITTED))) {
      for (int[] append : new int[][] {{0, 1}, {1, 2}, {3, 1}}) {
        AppendRowsResponse answer = rows.append(rows("committed", append[0] + 1, append[1]), append[0]).get();
        want("offset", answer.getAppendResult().getOffset().getValue(), (long) append[0]);
      }
    }
    want("rows", stored("committed-"), 4L);
  }

  void writeBuffered() throws Exception {
    String stream = created(WriteStream.Type.BUFFERED);
    try (JsonStreamWriter rows = open(stream)) {
      rows.append(rows("buffered", 1, 4)).get();
    }
    want("rows before a flush", stored("buffered-"), 0L);
    FlushRowsRequest flush = FlushRowsRequest.newBuilder().setWriteStream(stream).setOffset(Int64Value.of(2)).build();
    want("flushed", writer.flushRows(flush).getOffset(), 2L);
    want("rows after a flush", stored("buffered-"), 3L);
  }

  void writePending() throws Exception {
    String stream = created(WriteStream.Type.PENDING);
    try (JsonStreamWriter rows = open(stream)) {
      rows.append(rows("pending", 1, 4)).get();
    }
    want("finalized", writer.finalizeWriteStream(stream).getRowCount(), 4L);
    want("rows before the commit", stored("pending-"), 0L);
    BatchCommitWriteStreamsRequest commit =
        BatchCommitWriteStreamsRequest.newBuilder().setParent(PATH).addWriteStreams(stream).build();
    want("errors", writer.batchCommitWriteStreams(commit).getStreamErrorsList(), List.of());
    want("rows after the commit", stored("pending-"), 4L);
  }

  static final List<String> DEFAULTS = List.of("default-1 1", "default-2 2", "default-3 3", "default-4 4");

  ReadSession session(DataFormat format) {
    ReadSession.TableReadOptions options =
        ReadSession.TableReadOptions.newBuilder()
            .addSelectedFields("sku")
            .addSelectedFields("count")
            .setRowRestriction("STARTS_WITH(sku, 'default-')")
            .build();
    return reader.createReadSession(
        CreateReadSessionRequest.newBuilder()
            .setParent("projects/" + PROJECT)
            .setReadSession(ReadSession.newBuilder().setTable(PATH).setDataFormat(format).setReadOptions(options))
            .setMaxStreamCount(2)
            .build());
  }

  /** What the streams of a session answer, block by block. */
  List<ReadRowsResponse> blocks(ReadSession session) {
    List<ReadRowsResponse> blocks = new ArrayList<>();
    session.getStreamsList().forEach(stream -> {
      ReadRowsRequest request = ReadRowsRequest.newBuilder().setReadStream(stream.getName()).build();
      reader.readRowsCallable().call(request).forEach(blocks::add);
    });
    return blocks;
  }

  void readAvro() throws Exception {
    ReadSession session = session(DataFormat.AVRO);
    org.apache.avro.Schema schema = new org.apache.avro.Schema.Parser().parse(session.getAvroSchema().getSchema());
    GenericDatumReader<GenericRecord> rows = new GenericDatumReader<>(schema);
    List<String> found = new ArrayList<>();
    for (ReadRowsResponse block : blocks(session)) {
      byte[] bytes = block.getAvroRows().getSerializedBinaryRows().toByteArray();
      BinaryDecoder decoder = DecoderFactory.get().binaryDecoder(bytes, null);
      while (!decoder.isEnd()) {
        GenericRecord row = rows.read(null, decoder);
        found.add(row.get("sku") + " " + row.get("count"));
      }
    }
    Collections.sort(found);
    want("rows", found, DEFAULTS);
  }

  void readArrow() throws Exception {
    ReadSession session = session(DataFormat.ARROW);
    List<String> found = new ArrayList<>();
    try (RootAllocator memory = new RootAllocator();
        VectorSchemaRoot batch = VectorSchemaRoot.create(MessageSerializer.deserializeSchema(
            channel(session.getArrowSchema().getSerializedSchema().toByteArray())), memory)) {
      VectorLoader loader = new VectorLoader(batch);
      for (ReadRowsResponse block : blocks(session)) {
        byte[] bytes = block.getArrowRecordBatch().getSerializedRecordBatch().toByteArray();
        try (var message = MessageSerializer.deserializeRecordBatch(channel(bytes), memory)) {
          loader.load(message);
        }
        for (int i = 0; i < batch.getRowCount(); i++) {
          found.add(batch.getVector("sku").getObject(i) + " " + batch.getVector("count").getObject(i));
        }
        batch.clear();
      }
    }
    Collections.sort(found);
    want("rows", found, DEFAULTS);
  }

  static ReadChannel channel(byte[] bytes) {
    return new ReadChannel(new ByteArrayReadableSeekableByteChannel(bytes));
  }

  void query() throws Exception {
    String sql = "SELECT SUM(count) AS n, MAX(price) AS price, MAX(placed) AS placed FROM `" + DATASET + ".orders` WHERE sku LIKE @like";
    QueryJobConfiguration query =
        QueryJobConfiguration.newBuilder(sql)
            .addNamedParameter("like", QueryParameterValue.string("default-%"))
            .build();
    FieldValueList row = bigquery.query(query).iterateAll().iterator().next();
    want("n", row.get("n").getLongValue(), 10L);
    want("price", row.get("price").getNumericValue(), new BigDecimal("2.5"));
    want("placed", row.get("placed").getTimestampInstant(), PLACED);
  }

  void delete() {
    want("deleted", bigquery.delete(TABLE), true);
    want("table", bigquery.getTable(TABLE), null);
    want("deleted", bigquery.delete(DatasetId.of(DATASET), DatasetDeleteOption.deleteContents()), true);
    want("dataset", bigquery.getDataset(DATASET), null);
  }
}
