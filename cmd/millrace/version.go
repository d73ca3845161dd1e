package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, the commit and the Go release it was built with",
		Args:    noArgs,
		Example: "  millrace version",
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := readVersion()
			_, err := fmt.Fprintf(a.stdout, "millrace %s\ncommit %s\n%s %s/%s\n", v.version, v.commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

type versionInfo struct{ version, commit string }

// readVersion asks the build information that the go command puts into every binary.
func readVersion() versionInfo {
	v := versionInfo{"(devel)", "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.version = info.Main.Version
	}
	modified := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.commit = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	if modified {
		v.commit += " with uncommitted changes"
	}
	return v
}
