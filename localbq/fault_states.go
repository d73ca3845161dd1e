package localbq

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/fault"
	"github.com/millrace-dev/millrace/localbq/internal/objects"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
	"github.com/millrace-dev/millrace/localbq/internal/writeapi"
)

// changeState carries out a state action of a fault rule that fired for a call.
func (i *Instance) changeState(s fault.State, c fault.Call) error {
	switch s.Do {
	case fault.ExpireSession:
		return i.expire(cmp.Or(s.Session, c.Stream))
	case fault.ExpireStream:
		return writeapi.Expire(i.store, c.Stream)
	case fault.ExhaustQuota:
		i.storms.Begin(s.Quota, 0, time.Duration(s.For))
		return nil
	case fault.DropResult:
		return i.dropResult(cmp.Or(s.Job, c.Job))
	case fault.RestartServer:
		i.restart()
		return nil
	case fault.DeleteObject, fault.CorruptObject, fault.HideObject:
		return i.changeObject(cmp.Or(s.Object, c.Object), s)
	}
	ref, err := i.stateTable(cmp.Or(s.Table, c.Table))
	if err != nil {
		return err
	}
	switch s.Do {
	case fault.DeleteTable:
		return i.store.DeleteTable(ref)
	case fault.RecreateTable:
		return i.recreate(ref)
	case fault.TruncateTable:
		return i.truncate(ref)
	case fault.OpenWindow:
		t, err := i.store.Table(ref)
		if err == nil {
			i.storms.Begin(s.Window, t.Instance(), time.Duration(s.For))
		}
		return err
	case fault.TouchTable:
		_, err := i.store.UpdateTable(ref, "", func(*schema.Definition) error { return nil })
		return err
	}
	_, err = i.store.ForceTable(ref, func(d *schema.Definition) error { return changeColumn(d, s) })
	return err
}

// changeObject gets an object into trouble.
func (i *Instance) changeObject(name string, s fault.State) error {
	rest, ok := strings.CutPrefix(name, "gs://")
	bucket, object, slash := strings.Cut(rest, "/")
	if !ok || !slash {
		return fmt.Errorf("object %q: expected gs://bucket/object", name)
	}
	switch s.Do {
	case fault.DeleteObject:
		return i.objects.Delete(bucket, object, 0, objects.Conditions{})
	case fault.CorruptObject:
		return i.objects.Corrupt(bucket, object)
	}
	return i.objects.Hide(bucket, object, time.Duration(s.For))
}

// stateTable reads a table as fault rules spell it.
func (i *Instance) stateTable(name string) (store.TableRef, error) {
	if ref, ok := store.ParseTablePath(name); ok {
		return ref, nil
	}
	return i.config.table(name)
}

func (i *Instance) recreate(ref store.TableRef) error {
	t, err := i.store.Table(ref)
	if err != nil {
		return err
	}
	if err := i.store.DeleteTable(ref); err != nil {
		return err
	}
	_, err = i.store.CreateTable(ref, t.Info().Definition.Clone())
	return err
}

func (i *Instance) truncate(ref store.TableRef) error {
	t, err := i.store.Table(ref)
	if err != nil {
		return err
	}
	_, err = t.Write(store.Rows{Info: t.Info(), Truncate: true})
	return err
}

// changeColumn edits a definition's columns.
func changeColumn(d *schema.Definition, s fault.State) error {
	if d.Schema == nil {
		d.Schema = &schema.Schema{}
	}
	fields := d.Schema.Fields
	at := d.Schema.Index(s.Column)
	if (at >= 0) == (s.Do == fault.AddColumn) {
		return fmt.Errorf("column %s: expected it to be there for all but %s, and not for that", s.Column, fault.AddColumn)
	}
	switch s.Do {
	case fault.AddColumn:
		f, err := newColumn(s.Column, s.Type, s.Mode)
		if err != nil {
			return err
		}
		f.Renew()
		d.Schema.Fields = append(fields, f)
	case fault.DropColumn:
		d.Schema.Fields = slices.Delete(fields, at, at+1)
	case fault.RelaxColumn:
		if fields[at].Mode != schema.Required {
			return fmt.Errorf("column %s is not REQUIRED", s.Column)
		}
		fields[at].Mode = schema.Nullable
	case fault.RetypeColumn:
		mode := ""
		if fields[at].Mode == schema.Repeated {
			mode = schema.Repeated.String()
		}
		f, err := newColumn(fields[at].Name, s.Type, mode)
		if err != nil {
			return err
		}
		if f.Type == fields[at].Type {
			return fmt.Errorf("column %s is of type %s already", s.Column, f.Type)
		}
		f.Renew()
		fields[at] = f
	}
	return nil
}

func newColumn(name, typ, mode string) (*schema.Field, error) {
	s, err := schema.FromREST(&bqapi.TableSchema{Fields: []*bqapi.TableFieldSchema{{Name: name, Type: strings.ToUpper(typ), Mode: mode}}})
	if err != nil {
		return nil, err
	}
	return s.Fields[0], nil
}
