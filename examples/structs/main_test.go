package main

import (
	"context"
	"fmt"
)

func Example() {
	if err := run(context.Background(), "orders.ndjson"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// my-project.orders.north: 2 rows
	// my-project.orders.south: 1 rows
	// read 4, written 3, dropped 1
}
