// Package value reads the texts and packed forms that values of BigQuery's types travel in, into the form the local
// BigQuery stores: days, microseconds, scaled integers, normalised JSON, WKT. It checks every range BigQuery checks.
package value
