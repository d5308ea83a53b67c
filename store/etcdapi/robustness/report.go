package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/anishathalye/porcupine"
	"go.etcd.io/etcd/tests/v3/robustness/report"
	"go.uber.org/zap"
)

// Files in a report.
const (
	historyFile    = "history.json"
	verdictFile    = "verdict.txt"
	validationFile = "validation.log"
	orderFile      = "order.html" // the longest linear orders found
	keptSegments   = "server-" + segmentsName
	serverLogFile  = "server.log"
)

// saveReport keeps a history, with what the server has left in dir, for a person and
// for loadReport.
func saveReport(path, dir string, h *history, v verdict) error {
	r, err := report.NewTestReport(zap.NewNop(), path, map[string]string{
		dataName: filepath.Join(dir, dataName), segmentsName: filepath.Join(dir, segmentsName),
	}, nil)
	if err != nil {
		return err
	}
	r.SetClientReports(h.clients)
	if err := r.SaveEtcdData(); err != nil {
		return fmt.Errorf("keep the history: %w", err)
	}
	text, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		return err
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(path, historyFile), append(text, '\n'), 0o600),
		os.WriteFile(filepath.Join(path, verdictFile), []byte(v.String()+"\n"), 0o600),
		copyFile(filepath.Join(path, validationFile), filepath.Join(dir, validationFile)),
		copyFile(filepath.Join(path, serverLogFile), filepath.Join(dir, serverLogFile)))
	if l := v.linearization; err == nil && l.Model.Step != nil && l.Error() != nil {
		err = porcupine.VisualizePath(l.Model, l.Info, filepath.Join(path, orderFile))
	}
	if err != nil {
		return fmt.Errorf("keep the history: %w", err)
	}
	return nil
}

// loadReport reads a history that saveReport has kept.
func loadReport(path string) (*history, error) {
	text, err := os.ReadFile(filepath.Join(path, historyFile))
	if err != nil {
		return nil, fmt.Errorf("load a history: %w", err)
	}
	h := &history{}
	if err := json.Unmarshal(text, h); err != nil {
		return nil, fmt.Errorf("load a history: %s: %w", historyFile, err)
	}
	if h.clients, err = report.LoadClientReports(path); err != nil {
		return nil, fmt.Errorf("load a history: %w", err)
	}
	return h, nil
}

func copyFile(to, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o600)
}
