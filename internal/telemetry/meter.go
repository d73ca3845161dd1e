// Package telemetry makes the instruments of stream.Meter visible to Prometheus, through OpenTelemetry.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/millrace-dev/millrace/stream"
)

// Meter is a stream.Meter whose series a Prometheus server can read from Handler. It may be used from any goroutine.
type Meter struct {
	meter    metric.Meter
	provider *sdk.MeterProvider
	registry *prometheus.Registry

	mu     sync.Mutex // guards series
	series map[string]any
}

// New makes an empty Meter.
func New() (*Meter, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo(), otelprom.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("prometheus exporter: %w", err)
	}
	provider := sdk.NewMeterProvider(sdk.WithReader(exporter))
	return &Meter{meter: provider.Meter("millrace"), provider: provider, registry: registry, series: map[string]any{}}, nil
}

// Handler answers a Prometheus server.
func (m *Meter) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Close stops the export. Instruments may be used afterwards and count nothing.
func (m *Meter) Close(ctx context.Context) error { return m.provider.Shutdown(ctx) }

// Counter returns the counter of that instrument and labels, which shows as 0 from now on.
func (m *Meter) Counter(in stream.Instrument, labels ...stream.Label) stream.Counter {
	return lookup(m, in, labels, func(set metric.MeasurementOption) (counter, error) {
		c, err := m.meter.Int64Counter(in.Name, metric.WithUnit(unit(in)), metric.WithDescription(in.Help))
		if err == nil {
			c.Add(context.Background(), 0, set)
		}
		return counter{c, set}, err
	})
}

// Gauge returns the gauge of that instrument and labels, which shows as 0 until it is set.
func (m *Meter) Gauge(in stream.Instrument, labels ...stream.Label) stream.Gauge {
	return lookup(m, in, labels, func(set metric.MeasurementOption) (gauge, error) {
		g, err := m.meter.Int64Gauge(in.Name, metric.WithUnit(unit(in)), metric.WithDescription(in.Help))
		if err == nil {
			g.Record(context.Background(), 0, set)
		}
		return gauge{g, set}, err
	})
}

// lookup finds a series, or makes it. A name that no instrument can have is a bug of the package that declares it.
func lookup[S any](m *Meter, in stream.Instrument, labels []stream.Label, make func(metric.MeasurementOption) (S, error)) S {
	key := seriesKey(in, labels)
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.series[key].(S); ok {
		return s
	}
	attrs := []attribute.KeyValue{}
	for _, l := range labels {
		attrs = append(attrs, attribute.String(l.Key, strings.ToValidUTF8(l.Value, "\uFFFD")))
	}
	s, err := make(metric.WithAttributeSet(attribute.NewSet(attrs...)))
	if err != nil {
		panic(errors.Join(fmt.Errorf("instrument %q", in.Name), err))
	}
	m.series[key] = s
	return s
}

// unit leaves out what would change the name that Prometheus sees, so that it is the documented one: "1", which makes every
// plain number a ratio, and milliseconds, which the names end with already.
func unit(in stream.Instrument) string {
	if in.Unit == "1" || in.Unit == "ms" && strings.HasSuffix(in.Name, "_ms") {
		return ""
	}
	return in.Unit
}

func seriesKey(in stream.Instrument, labels []stream.Label) string {
	var b strings.Builder
	b.WriteString(in.Name)
	for _, l := range labels {
		fmt.Fprintf(&b, "\x00%q=%q", l.Key, l.Value)
	}
	return b.String()
}

type counter struct {
	c   metric.Int64Counter
	set metric.MeasurementOption
}

func (c counter) Add(n int64) { c.c.Add(context.Background(), n, c.set.(metric.AddOption)) }

type gauge struct {
	g   metric.Int64Gauge
	set metric.MeasurementOption
}

func (g gauge) Set(v int64) { g.g.Record(context.Background(), v, g.set.(metric.RecordOption)) }
