package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/bigquery/schema/schemafile"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func (a *app) schema() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Infer, compare, join and convert schemas of tables",
		Long: `schema works on files that hold the schema of a table, in one of these forms, which are told apart by their contents:

  json     as bq and the REST API write it
  avro     an Avro schema, or an Avro file
  arrow    an Arrow file or stream
  parquet  a Parquet file
  proto    a descriptor set, as protoc --descriptor_set_out writes it (.pb, .desc, or with --message)
  go       a source file with a struct that schema convert wrote (.go)`,
		Args: subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.schemaInfer(), a.schemaDiff(), a.schemaUnion(), a.schemaConvert())
	return cmd
}

// schemaFlags say what files do not.
type schemaFlags struct{ schemafile.Options }

func (f *schemaFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Message, "message", "", "full `name` of the message, where the file is a descriptor set")
	cmd.Flags().StringVar(&f.Type, "type", "", "`name` of the struct, where the file is Go source")
}

// readSchema reads the schema in a file; "-" is standard input.
func (a *app) readSchema(name string, o schemafile.Options) (*table.Schema, error) {
	s, err := a.openSchema(name, o)
	if err != nil {
		return nil, usage(inFile(name, err))
	}
	return s, nil
}

// inFile puts the name of the file before each of the faults that were found in it.
func inFile(name string, err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		faults := joined.Unwrap()
		out := make([]error, len(faults))
		for i, f := range faults {
			out[i] = inFile(name, f)
		}
		return errors.Join(out...)
	}
	var path *os.PathError
	if errors.As(err, &path) {
		return err // has the name
	}
	return fmt.Errorf("%s: %w", name, err)
}

func (a *app) openSchema(name string, o schemafile.Options) (*table.Schema, error) {
	if name == "-" {
		text, err := io.ReadAll(a.stdin)
		if err != nil {
			return nil, err
		}
		return schemafile.Read(bytes.NewReader(text), int64(len(text)), name, o)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a file: expected one, or - for standard input")
	}
	return schemafile.Read(f, info.Size(), name, o)
}

func (a *app) schemaDiff() *cobra.Command {
	var flags schemaFlags
	cmd := &cobra.Command{
		Use:   "diff FILE WANTED",
		Short: "Say how a schema would have to change to be another",
		Long: `diff prints a line for everything that would have to change about the schema in the first file for it to be the one in the
second. Columns are paired by name, ignoring case.

Exit status: 0 the schemas are the same, 1 they differ, 2 a file cannot be read.`,
		Example: "  millrace schema diff schema.json wanted.json\n  bq show --schema my-project:github.issues | millrace schema diff - issues.parquet",
		Args:    filesArgs(2, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			have, err := a.readSchema(args[0], flags.Options)
			if err != nil {
				return err
			}
			want, err := a.readSchema(args[1], flags.Options)
			if err != nil {
				return err
			}
			differences := have.Diff(want)
			if len(differences) == 0 {
				return nil
			}
			return a.output("-", func(w io.Writer) error {
				for _, d := range differences {
					if _, err := fmt.Fprintf(w, "%v: %v\n", d.Change, d); err != nil {
						return err
					}
				}
				return errReported
			})
		},
	}
	flags.add(cmd)
	return cmd
}

func (a *app) schemaUnion() *cobra.Command {
	var flags schemaFlags
	var output, to string
	var strict bool
	cmd := &cobra.Command{
		Use:   "union FILE...",
		Short: "Join schemas into one that a table can serve all of",
		Long: `union prints the least schema that the table of the first file can be changed into and that takes what is made for all
others: its columns stay as they are and where they are, those it lacks follow as NULLABLE, and REQUIRED columns that another
schema has otherwise become NULLABLE. Columns that change their type, or become lists, have no union.`,
		Example: "  millrace schema union today.json tomorrow.json -o schema.json",
		Args:    filesArgs(1, 0),
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := a.readSchema(args[0], flags.Options)
			if err != nil {
				return err
			}
			for _, name := range args[1:] {
				next, err := a.readSchema(name, flags.Options)
				if err != nil {
					return err
				}
				if all, err = all.Union(next, table.UnionOptions{AllowNewFields: true, AllowFieldRelaxation: !strict}); err != nil {
					return inFile(name, err)
				}
			}
			return a.writeSchema(all, output, to, flags.Options)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&strict, "keep-required", false, "leave REQUIRED columns REQUIRED")
	addOutput(cmd, &output, &to)
	return cmd
}

func (a *app) schemaConvert() *cobra.Command {
	var flags schemaFlags
	var output, to, goPackage string
	cmd := &cobra.Command{
		Use:   "convert FILE",
		Short: "Write a schema in another form",
		Long: `convert writes the schema in a file in another form, the one that --to says or the name of the output ends with. What a form
has no place for, such as policy tags, travels as metadata, so that the way back loses nothing; a file that was changed since is
read as what it is.`,
		Example: `  millrace schema convert schema.json -o schema.avsc
  millrace schema convert events.parquet
  millrace schema convert schema.json --to go --package shop --type Order`,
		Args: filesArgs(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			read, write := flags.Options, flags.Options
			write.Package = goPackage
			if schemafile.FormOf(args[0]) != schemafile.Go {
				read.Type = ""
			}
			s, err := a.readSchema(args[0], read)
			if err != nil {
				return err
			}
			return a.writeSchema(s, output, to, write)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&goPackage, "package", "", "`name` of the package that Go source is written for (default main)")
	addOutput(cmd, &output, &to)
	return cmd
}

func addOutput(cmd *cobra.Command, output, to *string) {
	cmd.Flags().StringVarP(output, "output", "o", "-", "`file` to write to; it appears when it is complete")
	cmd.Flags().StringVar(to, "to", "", "`form` to write: json, avro, arrow, parquet, proto or go (default: what the name of the output ends with, else json)")
}

func (a *app) writeSchema(s *table.Schema, output, to string, o schemafile.Options) error {
	form := schemafile.Form(to)
	if form != "" && !slices.Contains(schemafile.Forms(), form) {
		return usagef("--to %q: expected json, avro, arrow, parquet, proto or go", to)
	}
	if strings.EqualFold(filepath.Ext(output), ".proto") {
		return usagef("-o %s: the form proto is a descriptor set, which is no source: name it .pb", output)
	}
	if form == "" {
		form = schemafile.FormOf(output)
	}
	if form == "" {
		form = schemafile.JSON
	}
	var text bytes.Buffer
	if err := schemafile.Write(&text, s, form, o); err != nil {
		return usage(err)
	}
	return a.output(output, func(w io.Writer) error {
		_, err := w.Write(text.Bytes())
		return err
	})
}

// filesArgs asks for a number of files; most 0 is any.
func filesArgs(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || most > 0 && len(args) > most {
			return usagef("schema %s takes %s, got %d; see %s --help", cmd.Name(), strings.TrimPrefix(cmd.Use, cmd.Name()+" "), len(args), cmd.CommandPath())
		}
		stdin := 0
		for _, name := range args {
			if name == "-" {
				stdin++
			}
		}
		if stdin > 1 {
			return usagef("standard input, -, is named %d times, and can be read once", stdin)
		}
		return nil
	}
}
