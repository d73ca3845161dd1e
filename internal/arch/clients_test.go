package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The page of client versions is held to the files that pin them.
func TestClientsPage(t *testing.T) {
	page := readPage(t, "docs/reference/clients.md")
	for file, pin := range map[string]string{
		"clients/go.mod":                  `(?m)^\t(cloud\.google\.com/go/(?:bigquery|storage) v[0-9.]+)$`,
		"clients/python/requirements.txt": `(?m)^((?:google-cloud-bigquery|google-cloud-bigquery-storage|google-cloud-storage|pyarrow)==[0-9.]+)`,
		"clients/node/package.json":       `"(@google-cloud/[a-z-]+": "[0-9.]+)"`,
		"clients/java/pom.xml":            `(libraries-bom</artifactId>\s+<version>[0-9.]+)<`,
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		pins := regexp.MustCompile(pin).FindAllStringSubmatch(string(text), -1)
		if len(pins) == 0 {
			t.Errorf("%s pins nothing that this test knows", file)
		}
		for _, m := range pins {
			said := m[1]
			if name, version, ok := strings.Cut(said, `": "`); ok {
				said = "`" + name + "` " + version
			}
			if name, version, ok := strings.Cut(said, "</artifactId>"); ok {
				said = "`" + name + "` " + strings.TrimPrefix(strings.TrimSpace(version), "<version>")
			}
			if !strings.Contains(page, said) {
				t.Errorf("docs/reference/clients.md does not say %s, which %s pins", said, file)
			}
		}
	}
}
