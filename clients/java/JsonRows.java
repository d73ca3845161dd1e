import com.google.cloud.bigquery.storage.v1.BQTableSchemaToProtoDescriptor;
import com.google.cloud.bigquery.storage.v1.JsonToProtoMessage;
import com.google.cloud.bigquery.storage.v1.TableFieldSchema;
import com.google.cloud.bigquery.storage.v1.TableSchema;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.json.JSONObject;

/**
 * What the JSON writer of the official client makes of each document of a table of cases, held against what the table says it
 * makes. Run by itself, it prints the table with what it makes now.
 *
 * <p>The table has a line for each document: the type of its one column, the value, what this writer makes of it (the row in
 * hexadecimal, or "refused"), and for whom else the rest is, with tabs between them.
 */
final class JsonRows {
  static final Path TABLE = Path.of("../../bigquery/row/jsonrow/testdata/java.tsv");
  static final Pattern TYPE = Pattern.compile("([A-Z0-9]+)(?:\\((\\d+)(?:,(\\d+))?\\))?(\\[])?");

  public static void main(String[] args) throws Exception {
    for (String line : Files.readAllLines(TABLE, StandardCharsets.UTF_8)) {
      String[] cells = line.split("\t", -1);
      if (!line.startsWith("#") && cells.length >= 3) {
        cells[2] = row(cells[0], cells[1]);
      }
      System.out.println(String.join("\t", cells));
    }
  }

  /** Fails, naming the documents that do not become what the table says. */
  static void check() throws Exception {
    List<String> wrong = new ArrayList<>();
    int checked = 0;
    for (String line : Files.readAllLines(TABLE, StandardCharsets.UTF_8)) {
      if (line.startsWith("#")) {
        continue;
      }
      String[] cells = line.split("\t", -1);
      String got = row(cells[0], cells[1]);
      checked++;
      if (!got.equals(cells[2])) {
        wrong.add(cells[0] + " of " + cells[1] + " is " + got + ", expected " + cells[2]);
      }
    }
    if (checked == 0 || !wrong.isEmpty()) {
      throw new AssertionError(wrong.size() + " of " + checked + " rows: " + String.join("; ", wrong));
    }
  }

  static String row(String type, String value) throws Exception {
    TableSchema schema = TableSchema.newBuilder().addFields(column(type)).build();
    var descriptor = BQTableSchemaToProtoDescriptor.convertBQTableSchemaToProtoDescriptor(schema);
    try {
      JSONObject document = new JSONObject("{\"v\": " + value + "}");
      var message = JsonToProtoMessage.INSTANCE.convertToProtoMessage(descriptor, schema, document, false);
      return HexFormat.of().formatHex(message.toByteArray());
    } catch (RuntimeException e) {
      return "refused";
    }
  }

  static TableFieldSchema column(String type) {
    Matcher m = TYPE.matcher(type);
    if (!m.matches()) {
      throw new IllegalArgumentException("column type " + type);
    }
    String name = m.group(1).equals("FLOAT64") ? "DOUBLE" : m.group(1);
    var column =
        TableFieldSchema.newBuilder()
            .setName("v")
            .setType(TableFieldSchema.Type.valueOf(name))
            .setMode(m.group(4) == null ? TableFieldSchema.Mode.NULLABLE : TableFieldSchema.Mode.REPEATED);
    if (m.group(2) != null) {
      column.setPrecision(Long.parseLong(m.group(2)));
      column.setScale(m.group(3) == null ? 0 : Long.parseLong(m.group(3)));
    }
    return column.build();
  }
}
