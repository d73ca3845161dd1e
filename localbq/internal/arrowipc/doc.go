// Package arrowipc reads the two Arrow messages an append request carries: a schema and a record batch, each one bare
// encapsulated message (Arrow columnar format, "Encapsulated message format"), without a stream around it.
//
// It trusts no byte: every offset, length and count is checked before it is used, buffers must lie one behind the other,
// and compressed ones must yield what they declare. What Schema and Decode return can be read without another check, but
// for text, which may be no UTF-8. Numbers are read byte by byte, so buffers need no alignment and are not copied.
package arrowipc
