package localbq_test

import (
	"context"
	"fmt"
	"log"

	"cloud.google.com/go/bigquery"
	"cloud.google.com/go/bigquery/storage/managedwriter"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/localbq"
)

// A table made over REST and rows written with the high-level writer, both by the official clients.
func ExampleStart() {
	ctx := context.Background()
	bq, err := localbq.Start(ctx, localbq.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer bq.Close()

	client, err := bigquery.NewClient(ctx, "my-project", bq.ClientOptions()...)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if err := client.Dataset("shop").Create(ctx, nil); err != nil {
		log.Fatal(err)
	}
	schema := bigquery.Schema{{Name: "id", Type: bigquery.IntegerFieldType, Required: true}}
	if err := client.Dataset("shop").Table("orders").Create(ctx, &bigquery.TableMetadata{Schema: schema}); err != nil {
		log.Fatal(err)
	}

	writer, err := managedwriter.NewClient(ctx, "my-project", bq.GRPCClientOptions()...)
	if err != nil {
		log.Fatal(err)
	}
	defer writer.Close()
	stream, err := writer.NewManagedStream(ctx,
		managedwriter.WithDestinationTable("projects/my-project/datasets/shop/tables/orders"),
		managedwriter.WithSchemaDescriptor(&descriptorpb.DescriptorProto{
			Name: new("Order"),
			Field: []*descriptorpb.FieldDescriptorProto{{
				Name: new("id"), Number: new(int32(1)), Type: descriptorpb.FieldDescriptorProto_TYPE_INT64.Enum(),
				Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
			}},
		}))
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close()
	row := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 42)
	result, err := stream.AppendRows(ctx, [][]byte{row, row})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := result.GetResult(ctx); err != nil {
		log.Fatal(err)
	}

	rows, err := bq.NumRows("my-project.shop.orders")
	fmt.Println(rows, "rows", err)
	// Output: 2 rows <nil>
}
