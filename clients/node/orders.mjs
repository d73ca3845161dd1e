// Official Node clients against a local BigQuery, unmodified. One function for each step of the suite.

import assert from 'node:assert/strict';
import {mkdtemp, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {BigQuery} from '@google-cloud/bigquery';
import {Storage} from '@google-cloud/storage';
import {adapt, managedwriter, BigQueryReadClient, ReadClient} from '@google-cloud/bigquery-storage';
import {credentials, status as Status} from '@grpc/grpc-js';
import avro from 'avsc';
import {PassThroughClient} from 'google-auth-library';

const {LOCAL_REST, LOCAL_GRPC, LOCAL_STORAGE, LOCAL_PROJECT: projectId, LOCAL_DATASET: datasetId} = process.env;
const path = `projects/${projectId}/datasets/${datasetId}/tables/orders`;

// How Node is pointed at the local service.
const authClient = new PassThroughClient();
const bigquery = new BigQuery({projectId, apiEndpoint: `http://${LOCAL_REST}`, authClient});
const [servicePath, port] = LOCAL_GRPC.split(':');
const rpc = {projectId, servicePath, port: Number(port), sslCreds: credentials.createInsecure(), authClient};
const writer = new managedwriter.WriterClient(rpc);
const reader = new BigQueryReadClient(rpc);
const storage = new Storage({projectId, apiEndpoint: `http://${LOCAL_STORAGE}`});

const schema = [
  {name: 'sku', type: 'STRING', mode: 'REQUIRED'},
  {name: 'count', type: 'INTEGER'},
  {name: 'price', type: 'NUMERIC'},
  {name: 'placed', type: 'TIMESTAMP'},
];
const placed = new Date('2026-01-02T03:04:05.678Z');

// How many orders begin with a prefix.
async function stored(prefix) {
  const query = `SELECT COUNT(*) AS n FROM \`${datasetId}.orders\` WHERE STARTS_WITH(sku, @prefix)`;
  const [rows] = await bigquery.query({query, params: {prefix}});
  return rows[0].n;
}

async function create() {
  await bigquery.createDataset(datasetId);
  await bigquery.dataset(datasetId).createTable('orders', {schema});
  const [table] = await bigquery.dataset(datasetId).table('orders').getMetadata();
  assert.deepEqual(table.schema.fields.map(f => f.name), ['sku', 'count', 'price', 'placed']);
  const [tables] = await bigquery.dataset(datasetId).getTables();
  assert.deepEqual(tables.map(t => t.id), ['orders']);
}

// A stream and a writer of JSON on it.
async function open(stream, table = path, fields = schema, ...pseudoColumns) {
  const connection = await writer.createStreamConnection({...stream, destinationTable: table});
  const storageSchema = adapt.convertBigQuerySchemaToStorageTableSchema({fields});
  const protoDescriptor = adapt.convertStorageSchemaToProto2Descriptor(storageSchema, 'root', ...pseudoColumns);
  return {connection, rows: new managedwriter.JSONWriter({connection, protoDescriptor})};
}

// The orders prefix-first, prefix-first+1, …
const orders = (prefix, first, count) =>
  Array.from({length: count}, (_, i) => ({sku: `${prefix}-${first + i}`, count: first + i, price: '2.5', placed}));

async function writeDefault() {
  const {connection, rows} = await open({streamId: managedwriter.DefaultStream});
  for (const first of [1, 3]) {
    await rows.appendRows(orders('default', first, 2)).getResult();
  }
  connection.close();
  assert.equal(await stored('default-'), 4);
}

async function writeCommitted() {
  const {connection, rows} = await open({streamType: managedwriter.CommittedStream});
  for (const [offset, count] of [[0, 1], [1, 2], [3, 1]]) {
    const answer = await rows.appendRows(orders('committed', offset + 1, count), offset).getResult();
    assert.equal(Number(answer.appendResult.offset.value), offset);
  }
  const again = await rows.appendRows(orders('committed', 1, 1), 0).getResult();
  assert.equal(again.error.code, Status.ALREADY_EXISTS); // this client answers what it does not retry
  connection.close();
  assert.equal(await stored('committed-'), 4);
}

async function writeBuffered() {
  const {connection, rows} = await open({streamType: managedwriter.BufferedStream});
  await rows.appendRows(orders('buffered', 1, 4)).getResult();
  assert.equal(await stored('buffered-'), 0);
  const flushed = await connection.flushRows({offset: 2});
  assert.equal(Number(flushed.offset), 2);
  connection.close();
  assert.equal(await stored('buffered-'), 3);
}

async function writePending() {
  const {connection, rows} = await open({streamType: managedwriter.PendingStream});
  await rows.appendRows(orders('pending', 1, 4)).getResult();
  const {rowCount} = await connection.finalize();
  assert.equal(Number(rowCount), 4);
  connection.close();
  assert.equal(await stored('pending-'), 0);
  const answer = await writer.batchCommitWriteStream({parent: path, writeStreams: [connection.getStreamId()]});
  assert.deepEqual(answer.streamErrors, []);
  assert.equal(await stored('pending-'), 4);
}

// Changes keep a table with a primary key up to date: the greatest sequence number of a key wins.
async function writeChanges() {
  const fields = schema.slice(0, 2);
  const tableConstraints = {primaryKey: {columns: ['sku']}};
  const [stock] = await bigquery.dataset(datasetId).createTable('stock', {schema: {fields}, tableConstraints});
  const {connection, rows} = await open({streamId: managedwriter.DefaultStream}, path.replace('orders', 'stock'), fields,
    adapt.withChangeType(), adapt.withChangeSequenceNumber());
  const change = (sku, count, type, sequence) => ({sku, count, _CHANGE_TYPE: type, _CHANGE_SEQUENCE_NUMBER: sequence});
  const answer = await rows.appendRows([
    change('tea', 1, 'UPSERT', '1'), change('cup', 1, 'UPSERT', '1'),
    change('tea', 3, 'UPSERT', '3'), change('tea', 2, 'UPSERT', '2'), change('cup', null, 'DELETE', '2'),
  ]).getResult();
  assert.ok(!answer.error, answer.error?.message);
  connection.close();
  assert.deepEqual((await bigquery.query(`SELECT * FROM \`${datasetId}.stock\``))[0], [{sku: 'tea', count: 3}]);
  await stock.delete();
}

const defaults = [1, 2, 3, 4].map(i => `default-${i} ${i}`);

async function readAvro() {
  const [session] = await reader.createReadSession({
    parent: `projects/${projectId}`,
    readSession: {
      table: path,
      dataFormat: 'AVRO',
      readOptions: {selectedFields: ['sku', 'count'], rowRestriction: "STARTS_WITH(sku, 'default-')"},
    },
    maxStreamCount: 2,
  });
  const type = avro.Type.forSchema(JSON.parse(session.avroSchema.schema));
  const found = [];
  for (const {name} of session.streams) {
    for await (const {avroRows} of reader.readRows({readStream: name})) {
      const block = Buffer.from(avroRows.serializedBinaryRows);
      for (let position = 0; position < block.length; ) {
        const {value, offset} = type.decode(block, position);
        found.push(`${value.sku} ${value.count.long ?? value.count}`);
        position = offset;
      }
    }
  }
  assert.deepEqual(found.sort(), defaults);
}

// The client's own table reader speaks Arrow.
async function readArrow() {
  const client = new ReadClient(rpc);
  const table = await client.createTableReader({table: {projectId, datasetId, tableId: 'orders'}});
  const [rows] = await table.getRows({selectedFields: 'sku,count'});
  client.close();
  const found = rows.map(({f: [sku, count]}) => `${sku.v} ${count.v}`).filter(r => r.startsWith('default-'));
  assert.deepEqual(found.sort(), defaults);
}

async function query() {
  const query = `SELECT SUM(count) AS n, MAX(price) AS price, MAX(placed) AS placed
    FROM \`${datasetId}.orders\` WHERE sku LIKE @like`;
  const [[row]] = await bigquery.query({query, params: {like: 'default-%'}});
  assert.equal(row.n, 10);
  assert.equal(String(row.price), '2.5');
  assert.equal(new Date(row.placed.value).getTime(), placed.getTime());
}

async function update() {
  const table = bigquery.dataset(datasetId).table('orders');
  await table.setMetadata({schema: {fields: [...schema, {name: 'note', type: 'STRING'}]}});
  const [{schema: {fields}}] = await table.getMetadata();
  assert.deepEqual(fields.map(f => f.name), ['sku', 'count', 'price', 'placed', 'note']);
}

async function listRows() {
  const table = bigquery.dataset(datasetId).table('orders');
  const found = [];
  for (let page = {maxResults: 4, autoPaginate: false}; page; ) {
    const [rows, next] = await table.getRows(page);
    assert.ok(rows.length <= 4);
    found.push(...rows.map(r => `${r.sku} ${r.count}`).filter(r => r.startsWith('default-')));
    page = next;
  }
  assert.deepEqual(found.sort(), defaults);
}

async function insertAll() {
  const orders = bigquery.dataset(datasetId).table('orders');
  const rows = [1, 2].map(i => ({insertId: `row${i}`, json: {sku: `insert-${i}`, count: i, price: '2.5', placed}}));
  await orders.insert(rows, {raw: true});
  await orders.insert(rows, {raw: true}); // rows are known by their ids
  assert.equal(await stored('insert-'), 2);
  await assert.rejects(orders.insert([{sku: 'insert-3', count: 'many'}]), {name: 'PartialFailureError'});
}

async function ddl() {
  const made = bigquery.dataset(datasetId).table('made');
  await bigquery.query(`CREATE TABLE \`${datasetId}.made\` (sku STRING NOT NULL, count INT64) CLUSTER BY sku`);
  await bigquery.query(`INSERT INTO \`${datasetId}.made\` (sku, count) VALUES ('tea', 1)`);
  await bigquery.query(`ALTER TABLE \`${datasetId}.made\` ADD COLUMN note STRING`);
  assert.deepEqual((await made.getRows())[0], [{sku: 'tea', count: 1, note: null}]);
  await bigquery.query(`DROP TABLE \`${datasetId}.made\``);
  assert.deepEqual(await made.exists(), [false]);
}

async function dml() {
  const table = `\`${datasetId}.orders\``;
  for (const [query, affected] of [
    [`INSERT INTO ${table} (sku, count) VALUES ('dml-1', 1), ('dml-2', 2)`, '2'],
    [`UPDATE ${table} SET count = count + 10 WHERE STARTS_WITH(sku, 'dml-')`, '2'],
    [`DELETE FROM ${table} WHERE sku = 'dml-1'`, '1'],
  ]) {
    const [job] = await bigquery.createQueryJob({query});
    await job.getQueryResults();
    const [{statistics}] = await job.getMetadata();
    assert.equal(statistics.query.numDmlAffectedRows, affected, query);
  }
  assert.equal(await stored('dml-'), 1);
}

const csv = 'load-0,0,2.5,2026-01-02T03:04:05Z\nload-1,1,2.5,2026-01-02T03:04:05Z\n';

async function cloudStorage() {
  const [bucket] = await storage.createBucket(datasetId);
  await bucket.file('orders.csv').save(csv, {resumable: false, preconditionOpts: {ifGenerationMatch: 0}});
  assert.equal(String((await bucket.file('orders.csv').download())[0]), csv);
  const content = Buffer.alloc(800_000, 'content');
  const large = bucket.file('folder/large');
  await large.save(content, {resumable: true, chunkSize: 256 * 1024}); // in parts that can be resumed
  assert.ok(content.equals((await large.download())[0]));
  await large.delete();
  const [files] = await bucket.getFiles();
  assert.deepEqual(files.map(f => f.name), ['orders.csv']);
}

const rowsOf = async table => (await bigquery.dataset(datasetId).table(table).getMetadata())[0].numRows;

async function load() {
  const source = storage.bucket(datasetId).file('orders.csv');
  await bigquery.dataset(datasetId).table('loaded').load(source, {sourceFormat: 'CSV', schema: {fields: schema}});
  assert.equal(await rowsOf('loaded'), '2');
}

// A file of this machine is sent along with the job.
async function loadFile() {
  const file = join(await mkdtemp(join(tmpdir(), 'orders-')), 'orders.json');
  await writeFile(file, '{"sku": "file-1", "count": 1}\n{"sku": "file-2", "count": 2}\n');
  const options = {sourceFormat: 'NEWLINE_DELIMITED_JSON', schema: {fields: schema}};
  await bigquery.dataset(datasetId).table('from_file').load(file, options);
  assert.equal(await rowsOf('from_file'), '2');
}

async function copy() {
  await bigquery.dataset(datasetId).table('from_file').copy(bigquery.dataset(datasetId).table('copied'));
  assert.equal(await rowsOf('copied'), '2');
}

async function extract() {
  const to = storage.bucket(datasetId).file('out/copied.csv');
  await bigquery.dataset(datasetId).table('copied').extract(to, {format: 'CSV'});
  const lines = String((await to.download())[0]).trim().split('\n');
  assert.equal(lines[0], 'sku,count,price,placed');
  assert.deepEqual(lines.slice(1).map(l => l.split(',')[0]).sort(), ['file-1', 'file-2']);
}

async function everyType() {
  const query = `SELECT TRUE AS truth, 1.5 AS half, b'\\x00\\xff' AS raw, BIGNUMERIC '1e-38' AS tiny, DATE '2026-01-02' AS day,
    TIME '03:04:05.000006' AS hour, DATETIME '2026-01-02 03:04:05' AS civil, INTERVAL 3 DAY AS wait,
    RANGE<DATE> '[2026-01-02, UNBOUNDED)' AS span, ST_GEOGPOINT(1, 2) AS place, [1, 2] AS list,
    [STRUCT('tea' AS name, 2 AS count)] AS records, CAST(NULL AS STRING) AS nothing, JSON '{"a": [1, null]}' AS doc`;
  const [[row]] = await bigquery.query(query);
  const day = BigQuery.date('2026-01-02');
  assert.deepEqual(JSON.parse(JSON.stringify(row)), JSON.parse(JSON.stringify({
    truth: true, half: 1.5, raw: Buffer.from([0, 0xff]), tiny: '1e-38', day, hour: BigQuery.time('03:04:05.000006'),
    civil: BigQuery.datetime('2026-01-02T03:04:05'), wait: '0-0 3 0:0:0', span: {elementType: 'DATE', start: day, end: null},
    place: BigQuery.geography('POINT(1 2)'), list: [1, 2], records: [{name: 'tea', count: 2}], nothing: null,
    doc: '{"a":[1,null]}',
  })));
}

async function remove() {
  const table = bigquery.dataset(datasetId).table('orders');
  await table.delete();
  assert.deepEqual(await table.exists(), [false]);
  await bigquery.dataset(datasetId).delete({force: true});
  assert.deepEqual(await bigquery.dataset(datasetId).exists(), [false]);
}

const steps = {
  'create': create,
  'default stream': writeDefault,
  'committed stream': writeCommitted,
  'buffered stream': writeBuffered,
  'pending stream': writePending,
  'changes': writeChanges,
  'read Avro': readAvro,
  'read Arrow': readArrow,
  'query': query,
  'every type': everyType,
  'list rows': listRows,
  'update': update,
  'insertAll': insertAll,
  'DDL': ddl,
  'DML': dml,
  'Cloud Storage': cloudStorage,
  'load': load,
  'load a file': loadFile,
  'copy': copy,
  'extract': extract,
  'delete': remove,
};

for (const [name, step] of Object.entries(steps)) {
  const result = await step().then(() => 'ok', e => String(e).split(/\s+/).join(' '));
  console.log(`${name}\t${result}`);
}
writer.close();
await reader.close();
