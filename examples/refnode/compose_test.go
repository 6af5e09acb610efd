package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/jamq/jamq/examples/internal/opstest"
	"github.com/jamq/jamq/internal/wait"
)

// composition has the parts of compose.yaml that the tests read.
type composition struct {
	Services map[string]struct {
		Image                   string
		Build                   struct{ Context, Dockerfile string }
		Command, Volumes, Ports []string
		DependsOn               []string `yaml:"depends_on"`
		Environment             map[string]string
		Restart                 string
	}
	Volumes map[string]struct{}
}

const composeDir = "compose"

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(composeDir, file))
	require.NoError(t, err)
	decoder := yaml.NewDecoder(strings.NewReader(string(raw)))
	require.NoError(t, decoder.Decode(into), file)
}

func readComposition(t *testing.T) *composition {
	t.Helper()
	c := new(composition)
	readYAML(t, "compose.yaml", c)
	require.Len(t, c.Services, 4)
	return c
}

// mounts returns the files of this repository that a service sees, by their path in its container.
func (c *composition) mounts(service string) map[string]string {
	found := map[string]string{}
	for _, volume := range c.Services[service].Volumes {
		if from, to, _ := strings.Cut(volume, ":"); strings.HasPrefix(from, ".") {
			found[strings.TrimSuffix(to, ":ro")] = filepath.Join(composeDir, from)
		}
	}
	return found
}

// flagOf returns the value of a flag in a command.
func flagOf(t *testing.T, command []string, name string) string {
	t.Helper()
	i := slices.Index(command, name)
	require.Positive(t, i, "%v has no %s", command, name)
	return command[i+1]
}

// Each image has a version, each file and volume exists, and only this machine reaches the ports.
func TestComposition(t *testing.T) {
	c := readComposition(t)
	pinned := regexp.MustCompile(`^\S+:v?\d+\.\d+\.\d+(-\w+)?$`)
	for name, s := range c.Services {
		if s.Build.Context == "" {
			require.Regexp(t, pinned, s.Image, name)
		} else {
			require.FileExists(t, filepath.Join(composeDir, s.Build.Context, s.Build.Dockerfile))
			require.FileExists(t, filepath.Join(composeDir, s.Build.Context, "go.work"))
		}
		for _, volume := range s.Volumes {
			if from, _, _ := strings.Cut(volume, ":"); !strings.HasPrefix(from, ".") {
				require.Contains(t, c.Volumes, from)
			}
		}
		for _, file := range c.mounts(name) {
			require.FileExists(t, file)
		}
		for _, port := range s.Ports {
			require.Regexp(t, `^127\.0\.0\.1:(\d+):(\d+)$`, port)
		}
		for _, other := range s.DependsOn {
			require.Contains(t, c.Services, other)
		}
		require.Equal(t, "unless-stopped", s.Restart, name)
	}
	raw, err := os.ReadFile(filepath.Join(composeDir, "Dockerfile"))
	require.NoError(t, err)
	for _, from := range regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(string(raw), -1) {
		if from[1] != "scratch" {
			require.Regexp(t, pinned, from[1])
		}
	}
	for _, name := range []string{"jam", "node"} {
		require.FileExists(t, filepath.Join("..", path.Base(c.Services[name].Command[0]), "main.go"))
	}
}

// Prometheus finds its rules, and scrapes the port of the node's metrics in the job that the alerts
// name. Grafana finds Prometheus and the dashboard.
func TestCompositionOfMonitors(t *testing.T) {
	c := readComposition(t)
	var prometheus struct {
		Scrape []struct {
			Job    string                       `yaml:"job_name"`
			Static []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	readYAML(t, "prometheus.yml", &prometheus)
	require.Len(t, prometheus.Scrape, 1)
	require.Equal(t, "jamq", prometheus.Scrape[0].Job)
	_, port, err := net.SplitHostPort(flagOf(t, c.Services["node"].Command, "-metrics"))
	require.NoError(t, err)
	require.Equal(t, []string{"node:" + port}, prometheus.Scrape[0].Static[0].Targets)

	var sources struct {
		Datasources []struct{ Type, URL string }
	}
	readYAML(t, "grafana/datasource.yml", &sources)
	require.Len(t, sources.Datasources, 1)
	require.Equal(t, "http://prometheus:9090", sources.Datasources[0].URL)
	var boards struct {
		Providers []struct{ Options struct{ Path string } }
	}
	readYAML(t, "grafana/dashboards.yml", &boards)
	board := path.Join(boards.Providers[0].Options.Path, "jamq.json")
	require.Contains(t, c.mounts("grafana"), board)
	require.Equal(t, board, c.Services["grafana"].Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])

	root := t.TempDir()
	for to, from := range c.mounts("prometheus") {
		raw, err := os.ReadFile(from)
		require.NoError(t, err)
		to = filepath.Join(root, to)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		require.NoError(t, os.WriteFile(to, raw, 0o644))
	}
	out := opstest.Promtool(t, "check", "config", filepath.Join(root, "etc/prometheus/prometheus.yml"))
	require.Contains(t, out, "1 rule files found")
}

// The commands of the services work together: the node becomes ready on the chain of the JAM node.
func TestCompositionRuns(t *testing.T) {
	t.Parallel()
	c := readComposition(t)
	dir := t.TempDir()
	dockerfile, err := os.ReadFile("compose/Dockerfile")
	require.NoError(t, err)
	require.Contains(t, string(dockerfile), "/out/refnode -genesis > /out/genesis.json\n")
	instead := strings.NewReplacer("/data", dir, "/genesis.json", genesisFile(t), "0.0.0.0:", "127.0.0.1:0#")
	here := func(service string) (args []string) {
		for _, arg := range c.Services[service].Command[1:] {
			arg, _, _ = strings.Cut(instead.Replace(arg), "#") // without the port
			args = append(args, arg)
		}
		return args
	}
	require.Equal(t, "ws://jam:19800", flagOf(t, c.Services["node"].Command, "-jam"))
	require.Equal(t, "0.0.0.0:19800", flagOf(t, c.Services["jam"].Command, "-listen"))
	require.Equal(t, []string{"127.0.0.1:8545:8545"}, c.Services["node"].Ports)
	require.Equal(t, "0.0.0.0:8545", flagOf(t, c.Services["node"].Command, "-http"))

	jam := startJAMNode(t, append(here("jam"), "-datadir", t.TempDir(), "-slot", "60ms")...)
	var out lockedBuffer
	ctx, stop := context.WithCancel(t.Context())
	exit := make(chan int, 1)
	go func() { exit <- run(ctx, append(here("node"), "-jam", jam.url), &out, &out) }()
	operators := regexp.MustCompile(`Operators see (\S+) `)
	wait.Until(t, func() bool { return operators.MatchString(out.String()) }, "the node starts: %s", &out)
	url := operators.FindStringSubmatch(out.String())[1]
	wait.Until(t, func() bool {
		response, err := http.Get(url + "/metrics")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return err == nil && strings.Contains(string(body), "\njamq_node_ready 1\n")
	}, "Prometheus would see a node that is ready: %s", &out)
	stop()
	require.Zero(t, wait.Receive(t, exit, "the node stops"), "%s", &out)
}
