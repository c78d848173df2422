package system

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const composeFile, dockerfile = "../../docker-compose.yml", "../../Dockerfile"

// TestCompose_DockerReadsIt checks that docker compose and docker build can parse the files. It
// also checks that both reject broken files.
func TestCompose_DockerReadsIt(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: builds the parsers of Docker's files")
	}
	bin := buildTool(t, "compose")
	if out, err := exec.Command(bin, composeFile, dockerfile).CombinedOutput(); err != nil {
		t.Errorf("Docker refuses %s or %s: %v\n%s", composeFile, dockerfile, err, out)
	}
	broken := func(name, from, to string) string {
		text := readText(t, name)
		if !strings.Contains(text, from) {
			t.Fatalf("%s has no %q to break", name, from)
		}
		file := filepath.Join(t.TempDir(), filepath.Base(name))
		must(t, os.WriteFile(file, []byte(strings.Replace(text, from, to, 1)), 0o600))
		return file
	}
	for _, files := range [][]string{
		{broken(composeFile, "depends_on: [prometheus]", "depend_on: [prometheus]"), dockerfile},
		{broken(composeFile, "depends_on: [prometheus]", "depends_on: [nothing]"), dockerfile},
		{composeFile, broken(dockerfile, "ENTRYPOINT", "ENTRYPIONT")},
	} {
		if out, err := exec.Command(bin, files...).CombinedOutput(); err == nil {
			t.Errorf("the parsers take a broken file: %s", out)
		}
	}
}

// TestCompose_FitsTheFilesBesideIt checks that the files, targets and variables to which the
// services refer exist. It also checks that writ runs without root and on a read-only file system.
func TestCompose_FitsTheFilesBesideIt(t *testing.T) {
	var compose struct {
		Services map[string]struct {
			Volumes     []string
			Environment map[string]string
			ReadOnly    bool `yaml:"read_only"`
		}
	}
	must(t, yaml.Unmarshal([]byte(readText(t, composeFile)), &compose))
	configuration := readText(t, "../../docs/configuration.md")
	for name, s := range compose.Services {
		for _, volume := range s.Volumes {
			if source, _, _ := strings.Cut(volume, ":"); strings.HasPrefix(source, "./") {
				if _, err := os.Stat(filepath.Join("../..", source)); err != nil {
					t.Errorf("%s mounts what is not there: %v", name, err)
				}
			}
		}
		for variable := range s.Environment {
			if strings.HasPrefix(variable, "WRIT_") && !strings.Contains(configuration, "`"+variable+"`") {
				t.Errorf("%s sets %s, of which docs/configuration.md knows nothing", name, variable)
			}
		}
		if strings.HasPrefix(name, "writ") && !s.ReadOnly {
			t.Errorf("the file system of %s is not read-only", name)
		}
	}
	named := regexp.MustCompile(`\b([a-z0-9]+):(?:3820|3821|8405|9093)\b`)
	for _, file := range []string{prometheusDir + "/prometheus.yml", "../../deploy/haproxy/haproxy.cfg"} {
		hosts := named.FindAllStringSubmatch(readText(t, file), -1)
		if len(hosts) < 2 {
			t.Errorf("%s names the hosts %v, want both replicas", file, hosts)
		}
		for _, host := range hosts {
			if _, ok := compose.Services[host[1]]; !ok {
				t.Errorf("%s names %s, which is no service of %s", file, host[1], composeFile)
			}
		}
	}
	_, image, ok := strings.Cut(readText(t, dockerfile), "\nFROM scratch\n")
	if !ok || !regexp.MustCompile(`(?m)^USER [1-9][0-9]*:[1-9][0-9]*$`).MatchString(image) {
		t.Errorf("the image of %s is not made from scratch for a user by number:\n%s", dockerfile, image)
	}
}

func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	must(t, err)
	return string(text)
}
