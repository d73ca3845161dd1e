package main

import (
	"context"
	"fmt"
)

func Example() {
	if err := run(context.Background(), "mem://"); err != nil {
		fmt.Println(err)
	}
	// Output: finished: read 2, written 2
}
