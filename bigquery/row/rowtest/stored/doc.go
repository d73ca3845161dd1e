// Package stored tells what a BigQuery has stored of rows. It writes them to a local one in every way there is, over the default
// stream and by load jobs of staged files, and reads the tables in every way there is: row formats test with it that values arrive
// bit for bit.
package stored
