package main

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"text/tabwriter"
)

// print writes the table of one file.
func (b *bench) print(w io.Writer) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "\n%s: %.1f MB, %d rounds, compared with %s -w /dev/null in the same round\n\n",
		filepath.Base(b.file), float64(b.size)/1e6, len(b.costs[base]), base)
	t := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "program\tCPU s\tCPU ratio\tmin..max\tMB/s of CPU\twall s\twall ratio\tpeak MB\t")
	for _, p := range b.programs {
		b.row(t, p.name)
	}
	t.Flush() // writes to memory
	fmt.Fprintf(&out, "\nmedians; peak is never below %.1f MB\n", float64(b.floor)/1e6)
	_, err := w.Write(out.Bytes())
	return err
}

func (b *bench) row(w io.Writer, name string) {
	costs := b.costs[name]
	cpu := median(column(costs, func(c cost) float64 { return c.cpu.Seconds() }))
	wall := median(column(costs, func(c cost) float64 { return c.wall.Seconds() }))
	peak := median(column(costs, func(c cost) float64 { return float64(c.peak) / 1e6 }))
	cpuRatio, wallRatio := make([]float64, len(costs)), make([]float64, len(costs))
	for i, c := range costs {
		cpuRatio[i] = c.cpu.Seconds() / b.costs[base][i].cpu.Seconds()
		wallRatio[i] = c.wall.Seconds() / b.costs[base][i].wall.Seconds()
	}
	fmt.Fprintf(w, "%s\t%.3f\t%.2f\t%.2f..%.2f\t%.0f\t%.3f\t%.2f\t%.1f\t\n", name, cpu,
		median(cpuRatio), slices.Min(cpuRatio), slices.Max(cpuRatio), float64(b.size)/1e6/cpu,
		wall, median(wallRatio), peak)
}

func column(costs []cost, f func(cost) float64) []float64 {
	v := make([]float64, len(costs))
	for i, c := range costs {
		v[i] = f(c)
	}
	return v
}

// median is the middle of v, or the mean of the two middle ones; v is not empty.
func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return (v[n/2] + v[(n-1)/2]) / 2
}
