import com.google.api.gax.core.NoCredentialsProvider;
import com.google.api.gax.grpc.GrpcTransportChannel;
import com.google.api.gax.rpc.FixedTransportChannelProvider;
import com.google.api.gax.rpc.TransportChannelProvider;
import com.google.cloud.NoCredentials;
import com.google.cloud.WriteChannel;
import com.google.cloud.bigquery.BigQuery.DatasetDeleteOption;
import com.google.cloud.bigquery.BigQuery.TableDataListOption;
import com.google.cloud.bigquery.BigQuery;
import com.google.cloud.bigquery.BigQueryOptions;
import com.google.cloud.bigquery.CopyJobConfiguration;
import com.google.cloud.bigquery.DatasetId;
import com.google.cloud.bigquery.DatasetInfo;
import com.google.cloud.bigquery.ExtractJobConfiguration;
import com.google.cloud.bigquery.Field;
import com.google.cloud.bigquery.FieldValueList;
import com.google.cloud.bigquery.FormatOptions;
import com.google.cloud.bigquery.InsertAllRequest;
import com.google.cloud.bigquery.Job;
import com.google.cloud.bigquery.JobConfiguration;
import com.google.cloud.bigquery.JobInfo;
import com.google.cloud.bigquery.JobStatistics;
import com.google.cloud.bigquery.LoadJobConfiguration;
import com.google.cloud.bigquery.PrimaryKey;
import com.google.cloud.bigquery.QueryJobConfiguration;
import com.google.cloud.bigquery.QueryParameterValue;
import com.google.cloud.bigquery.Schema;
import com.google.cloud.bigquery.StandardSQLTypeName;
import com.google.cloud.bigquery.StandardTableDefinition;
import com.google.cloud.bigquery.TableConstraints;
import com.google.cloud.bigquery.TableDataWriteChannel;
import com.google.cloud.bigquery.TableId;
import com.google.cloud.bigquery.TableInfo;
import com.google.cloud.bigquery.TableResult;
import com.google.cloud.bigquery.WriteChannelConfiguration;
import com.google.cloud.bigquery.storage.v1.AppendRowsResponse;
import com.google.cloud.bigquery.storage.v1.BatchCommitWriteStreamsRequest;
import com.google.cloud.bigquery.storage.v1.BigQueryReadClient;
import com.google.cloud.bigquery.storage.v1.BigQueryReadSettings;
import com.google.cloud.bigquery.storage.v1.BigQueryWriteClient;
import com.google.cloud.bigquery.storage.v1.BigQueryWriteSettings;
import com.google.cloud.bigquery.storage.v1.CreateReadSessionRequest;
import com.google.cloud.bigquery.storage.v1.DataFormat;
import com.google.cloud.bigquery.storage.v1.Exceptions;
import com.google.cloud.bigquery.storage.v1.FlushRowsRequest;
import com.google.cloud.bigquery.storage.v1.JsonStreamWriter;
import com.google.cloud.bigquery.storage.v1.ReadRowsRequest;
import com.google.cloud.bigquery.storage.v1.ReadRowsResponse;
import com.google.cloud.bigquery.storage.v1.ReadSession;
import com.google.cloud.bigquery.storage.v1.TableFieldSchema;
import com.google.cloud.bigquery.storage.v1.TableSchema;
import com.google.cloud.bigquery.storage.v1.WriteStream;
import com.google.cloud.storage.Blob;
import com.google.cloud.storage.BlobInfo;
import com.google.cloud.storage.BucketInfo;
import com.google.cloud.storage.Storage;
import com.google.cloud.storage.StorageOptions;
import com.google.protobuf.Int64Value;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import java.io.ByteArrayOutputStream;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.Period;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.VectorLoader;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ReadChannel;
import org.apache.arrow.vector.ipc.message.MessageSerializer;
import org.apache.arrow.vector.util.ByteArrayReadableSeekableByteChannel;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.file.DataFileReader;
import org.apache.avro.file.DataFileWriter;
import org.apache.avro.file.SeekableByteArrayInput;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.generic.GenericRecordBuilder;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;
import org.json.JSONArray;
import org.json.JSONObject;
import org.threeten.extra.PeriodDuration;

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
  final Storage storage;

  /** How Java is pointed at the local service. */
  Orders(ManagedChannel plaintext) throws Exception {
    bigquery =
        BigQueryOptions.newBuilder()
            .setProjectId(PROJECT)
            .setHost("http://" + System.getenv("LOCAL_REST"))
            .setCredentials(NoCredentials.getInstance())
            .build()
            .getService();
    storage =
        StorageOptions.newBuilder()
            .setProjectId(PROJECT)
            .setHost("http://" + System.getenv("LOCAL_STORAGE"))
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
    steps.put("committed stream", orders::writeCommitted);
    steps.put("buffered stream", orders::writeBuffered);
    steps.put("pending stream", orders::writePending);
    steps.put("changes", orders::writeChanges);
    steps.put("JSON rows", JsonRows::check);
    steps.put("read Avro", orders::readAvro);
    steps.put("read Arrow", orders::readArrow);
    steps.put("query", orders::query);
    steps.put("every type", orders::everyType);
    steps.put("list rows", orders::listRows);
    steps.put("update", orders::update);
    steps.put("insertAll", orders::insertAll);
    steps.put("DDL", orders::ddl);
    steps.put("DML", orders::dml);
    steps.put("Cloud Storage", orders::cloudStorage);
    steps.put("load", orders::load);
    steps.put("load a file", orders::loadFile);
    steps.put("copy", orders::copy);
    steps.put("extract", orders::extract);
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

  static final Schema SCHEMA =
      Schema.of(
          Field.newBuilder("sku", StandardSQLTypeName.STRING).setMode(Field.Mode.REQUIRED).build(),
          Field.of("count", StandardSQLTypeName.INT64),
          Field.of("price", StandardSQLTypeName.NUMERIC),
          Field.of("placed", StandardSQLTypeName.TIMESTAMP));

  void create() {
    bigquery.create(DatasetInfo.of(DATASET));
    bigquery.create(TableInfo.of(TABLE, StandardTableDefinition.of(SCHEMA)));
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
      try {
        rows.append(rows("committed", 1, 1), 0).get();
        throw new AssertionError("an offset was written twice");
      } catch (ExecutionException e) {
        want("expected offset", ((Exceptions.OffsetAlreadyExists) e.getCause()).getExpectedOffset(), 4L);
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

  static TableFieldSchema column(String name, TableFieldSchema.Type type) {
    return TableFieldSchema.newBuilder().setName(name).setType(type).setMode(TableFieldSchema.Mode.NULLABLE).build();
  }

  static JSONObject change(String sku, Object count, String type, String sequence) {
    return new JSONObject().put("sku", sku).put("count", count).put("_CHANGE_TYPE", type).put("_CHANGE_SEQUENCE_NUMBER", sequence);
  }

  /** Changes keep a table with a primary key up to date: the greatest sequence number of a key wins. */
  void writeChanges() throws Exception {
    TableId stock = TableId.of(PROJECT, DATASET, "stock");
    PrimaryKey key = PrimaryKey.newBuilder().setColumns(List.of("sku")).build();
    bigquery.create(TableInfo.newBuilder(stock, StandardTableDefinition.of(Schema.of(SCHEMA.getFields().subList(0, 2))))
        .setTableConstraints(TableConstraints.newBuilder().setPrimaryKey(key).build())
        .build());
    TableSchema changes = TableSchema.newBuilder()
        .addFields(column("sku", TableFieldSchema.Type.STRING))
        .addFields(column("count", TableFieldSchema.Type.INT64))
        .addFields(column("_CHANGE_TYPE", TableFieldSchema.Type.STRING))
        .addFields(column("_CHANGE_SEQUENCE_NUMBER", TableFieldSchema.Type.STRING))
        .build();
    try (JsonStreamWriter rows = JsonStreamWriter.newBuilder(PATH.replace("orders", "stock"), changes, writer).build()) {
      rows.append(new JSONArray(List.of(
          change("tea", 1, "UPSERT", "1"), change("cup", 1, "UPSERT", "1"),
          change("tea", 3, "UPSERT", "3"), change("tea", 2, "UPSERT", "2"), change("cup", null, "DELETE", "2")))).get();
    }
    List<String> found = new ArrayList<>();
    bigquery.query(QueryJobConfiguration.of("SELECT sku, count FROM `" + DATASET + ".stock`")).iterateAll()
        .forEach(row -> found.add(row.get(0).getStringValue() + " " + row.get(1).getLongValue()));
    want("rows", found, List.of("tea 3"));
    bigquery.delete(stock);
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

  void everyType() throws Exception {
    FieldValueList row = bigquery.query(QueryJobConfiguration.of("SELECT TRUE AS truth, 1.5 AS half, b'\\x00\\xff' AS raw,"
        + " BIGNUMERIC '1e-38' AS tiny, DATE '2026-01-02' AS day, TIME '03:04:05.000006' AS hour,"
        + " DATETIME '2026-01-02 03:04:05' AS civil, INTERVAL 3 DAY AS wait, RANGE<DATE> '[2026-01-02, UNBOUNDED)' AS span,"
        + " ST_GEOGPOINT(1, 2) AS place, [1, 2] AS list, [STRUCT('tea' AS name, 2 AS count)] AS records,"
        + " CAST(NULL AS STRING) AS nothing, JSON '{\"a\": [1, null]}' AS doc")).iterateAll().iterator().next();
    want("truth", row.get("truth").getBooleanValue(), true);
    want("half", row.get("half").getDoubleValue(), 1.5);
    want("raw", Arrays.toString(row.get("raw").getBytesValue()), "[0, -1]");
    want("tiny", row.get("tiny").getNumericValue(), new BigDecimal("1e-38"));
    want("day", row.get("day").getStringValue(), "2026-01-02");
    want("hour", row.get("hour").getStringValue(), "03:04:05.000006");
    want("civil", row.get("civil").getStringValue(), "2026-01-02T03:04:05");
    want("wait", row.get("wait").getPeriodDuration(), PeriodDuration.of(Period.ofDays(3)));
    want("span", row.get("span").getRangeValue().getStart().getStringValue(), "2026-01-02");
    want("place", row.get("place").getStringValue(), "POINT(1 2)");
    want("list", row.get("list").getRepeatedValue().get(1).getLongValue(), 2L);
    want("records", row.get("records").getRepeatedValue().get(0).getRecordValue().get(0).getStringValue(), "tea");
    want("nothing", row.get("nothing").isNull(), true);
    want("doc", row.get("doc").getStringValue(), "{\"a\":[1,null]}");
  }

  void update() {
    List<Field> wider = new ArrayList<>(SCHEMA.getFields());
    wider.add(Field.of("note", StandardSQLTypeName.STRING));
    bigquery.update(TableInfo.of(TABLE, StandardTableDefinition.of(Schema.of(wider))));
    want("columns", bigquery.getTable(TABLE).getDefinition().getSchema().getFields().size(), 5);
  }

  void listRows() {
    TableResult rows = bigquery.listTableData(TABLE, SCHEMA, TableDataListOption.pageSize(4));
    want("another page", rows.hasNextPage(), true);
    List<String> found = new ArrayList<>();
    for (FieldValueList row : rows.iterateAll()) {
      found.add(row.get("sku").getStringValue() + " " + row.get("count").getLongValue());
    }
    found.removeIf(row -> !row.startsWith("default-"));
    Collections.sort(found);
    want("rows", found, DEFAULTS);
  }

  void insertAll() throws Exception {
    InsertAllRequest.Builder request = InsertAllRequest.newBuilder(TABLE);
    for (int i = 1; i <= 2; i++) {
      request.addRow("row" + i, Map.of("sku", "insert-" + i, "count", i, "price", "2.5", "placed", PLACED.toString()));
    }
    want("errors", bigquery.insertAll(request.build()).hasErrors(), false);
    want("errors", bigquery.insertAll(request.build()).hasErrors(), false); // rows are known by their ids
    want("rows", stored("insert-"), 2L);
    InsertAllRequest bad = InsertAllRequest.newBuilder(TABLE).addRow(Map.of("sku", "insert-3", "count", "many")).build();
    want("bad rows", bigquery.insertAll(bad).getInsertErrors().keySet(), Set.of(0L));
  }

  void ddl() throws Exception {
    String made = "`" + DATASET + ".made`";
    done(QueryJobConfiguration.of("CREATE TABLE " + made + " (sku STRING NOT NULL, count INT64) CLUSTER BY sku"));
    done(QueryJobConfiguration.of("INSERT INTO " + made + " (sku, count) VALUES ('tea', 1)"));
    done(QueryJobConfiguration.of("ALTER TABLE " + made + " ADD COLUMN note STRING"));
    Schema schema = bigquery.getTable(DATASET, "made").getDefinition().getSchema();
    want("columns", schema.getFields().size(), 3);
    want("sku", bigquery.listTableData(TableId.of(DATASET, "made"), schema).iterateAll().iterator().next().get("sku").getStringValue(), "tea");
    done(QueryJobConfiguration.of("DROP TABLE " + made));
    want("table", bigquery.getTable(DATASET, "made"), null);
  }

  void dml() throws Exception {
    String table = "`" + DATASET + ".orders`";
    Map<String, Long> statements = new LinkedHashMap<>();
    statements.put("INSERT INTO " + table + " (sku, count) VALUES ('dml-1', 1), ('dml-2', 2)", 2L);
    statements.put("UPDATE " + table + " SET count = count + 10 WHERE STARTS_WITH(sku, 'dml-')", 2L);
    statements.put("DELETE FROM " + table + " WHERE sku = 'dml-1'", 1L);
    for (Map.Entry<String, Long> statement : statements.entrySet()) {
      Job job = done(QueryJobConfiguration.of(statement.getKey()));
      JobStatistics.QueryStatistics statistics = job.getStatistics();
      want(statement.getKey(), statistics.getNumDmlAffectedRows(), statement.getValue());
    }
    want("rows", stored("dml-"), 1L);
  }

  void cloudStorage() throws Exception {
    storage.create(BucketInfo.of(DATASET));
    BlobInfo small = BlobInfo.newBuilder(DATASET, "orders.avro").build();
    byte[] file = avroFile();
    storage.create(small, file, Storage.BlobTargetOption.doesNotExist());
    want("object", Arrays.equals(storage.readAllBytes(small.getBlobId()), file), true);
    byte[] content = new byte[800_000];
    new Random(1).nextBytes(content);
    BlobInfo large = BlobInfo.newBuilder(DATASET, "folder/large").build();
    try (WriteChannel parts = storage.writer(large)) { // an upload in parts that can be resumed
      parts.setChunkSize(256 * 1024);
      parts.write(ByteBuffer.wrap(content));
    }
    want("large object", Arrays.equals(storage.readAllBytes(large.getBlobId()), content), true);
    want("deleted", storage.delete(large.getBlobId()), true);
    List<String> names = new ArrayList<>();
    storage.list(DATASET).iterateAll().forEach(o -> names.add(o.getName()));
    want("objects", names, List.of("orders.avro"));
  }

  /** An Avro file of two orders. */
  static byte[] avroFile() throws Exception {
    org.apache.avro.Schema schema =
        SchemaBuilder.record("Order").fields().requiredString("sku").optionalLong("count").endRecord();
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataFileWriter<GenericRecord> file = new DataFileWriter<>(new GenericDatumWriter<>(schema))) {
      file.create(schema, bytes);
      file.append(new GenericRecordBuilder(schema).set("sku", "load-0").set("count", 0L).build());
      file.append(new GenericRecordBuilder(schema).set("sku", "load-1").set("count", 1L).build());
    }
    return bytes.toByteArray();
  }

  /** Runs a job to its end. */
  Job done(JobConfiguration configuration) throws Exception {
    Job job = bigquery.create(JobInfo.of(configuration)).waitFor();
    want("error", job.getStatus().getError(), null);
    return job;
  }

  long rowsOf(String table) {
    return bigquery.getTable(TableId.of(DATASET, table)).getNumRows().longValue();
  }

  void load() throws Exception {
    TableId table = TableId.of(DATASET, "loaded");
    done(LoadJobConfiguration.of(table, "gs://" + DATASET + "/orders.avro", FormatOptions.avro()));
    want("rows", rowsOf("loaded"), 2L);
  }

  /** Content is sent along with the job. */
  void loadFile() throws Exception {
    WriteChannelConfiguration configuration =
        WriteChannelConfiguration.newBuilder(TableId.of(DATASET, "from_file"), FormatOptions.json()).setSchema(SCHEMA).build();
    TableDataWriteChannel content = bigquery.writer(configuration);
    content.write(ByteBuffer.wrap("{\"sku\": \"file-1\", \"count\": 1}\n{\"sku\": \"file-2\", \"count\": 2}\n".getBytes(StandardCharsets.UTF_8)));
    content.close();
    want("error", content.getJob().waitFor().getStatus().getError(), null);
    want("rows", rowsOf("from_file"), 2L);
  }

  void copy() throws Exception {
    done(CopyJobConfiguration.of(TableId.of(DATASET, "copied"), TableId.of(DATASET, "from_file")));
    want("rows", rowsOf("copied"), 2L);
  }

  void extract() throws Exception {
    String to = "gs://" + DATASET + "/out/copied-*.avro";
    done(ExtractJobConfiguration.newBuilder(TableId.of(DATASET, "copied"), to).setFormat("AVRO").setUseAvroLogicalTypes(true).build());
    List<String> found = new ArrayList<>();
    for (Blob file : storage.list(DATASET, Storage.BlobListOption.prefix("out/")).iterateAll()) {
      try (var rows = new DataFileReader<GenericRecord>(new SeekableByteArrayInput(file.getContent()), new GenericDatumReader<>())) {
        rows.forEach(row -> found.add(row.get("sku") + " " + row.get("count")));
      }
    }
    Collections.sort(found);
    want("rows", found, List.of("file-1 1", "file-2 2"));
  }

  void delete() {
    want("deleted", bigquery.delete(TABLE), true);
    want("table", bigquery.getTable(TABLE), null);
    want("deleted", bigquery.delete(DatasetId.of(DATASET), DatasetDeleteOption.deleteContents()), true);
    want("dataset", bigquery.getDataset(DATASET), null);
  }
}
