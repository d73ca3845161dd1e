// Package restriction writes conditions on rows as the restriction of a read session: the body of a WHERE clause, of which
// BigQuery sends only the rows that it holds for.
//
// What is written is necessary and need not be sufficient: every row that the conditions hold for passes it, and others may.
// So whoever has conditions keeps them, and asks each row again; a restriction saves what is transferred, and what is
// scanned where columns are those that the table is partitioned or clustered by. A part that cannot be written is left out
// where that lets more rows pass, which is in a conjunction, and takes its disjunction with it.
//
//	text := restriction.Write(schema, "",
//		restriction.Compare("day", restriction.AtLeast, restriction.Date("2026-08-12")),
//		restriction.Unknown(), // a function of the program's own
//	)
//	// ((`day` >= DATE '2026-08-12'))
//
// Names are in back-ticks and texts in quotes, with escapes, so that none of them means anything but itself.
package restriction
