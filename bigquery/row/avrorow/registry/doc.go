// Package registry asks a schema registry for Avro schemas, over the REST API that Confluent documents ("Schema Registry API
// Reference") and others serve too.
//
//	schemas, err := registry.New("https://registry.example.com", registry.Options{Username: key, Password: secret})
//	rows, err := avrorow.NewMessages(jobSchema, value, schemas, avrorow.Options{})
//
// What the registry answered is kept: a schema never changes under its id. No error holds a credential.
package registry
