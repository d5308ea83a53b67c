package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/etcdapi"
)

// validate checks what one setting alone can not tell, and returns the TLS
// configuration that the settings ask for.
func (s *serving) validate() (*tls.Config, error) {
	o := &s.opts
	if err := canBeDir(o.dataDir); err != nil {
		return nil, &settingError{"data-dir", o.dataDir, s.from.of("data-dir"), err}
	}
	if o.maxRequestBytes > math.MaxInt32-1<<20 {
		return nil, &settingError{"max-request-bytes", exactBytes(o.maxRequestBytes), s.from.of("max-request-bytes"),
			errors.New("valid: less than 2047MiB, which is as much as a gRPC message can be")}
	}
	keep, err := parseRetention(o.compactMode, o.compactRetention)
	if err != nil {
		return nil, &settingError{"auto-compaction-retention", o.compactRetention,
			s.from.of("auto-compaction-retention"), &invalidValue{err, validRetention}}
	}
	s.keep = keep
	if err := o.auth.validate(s.from); err != nil {
		return nil, err
	}
	config, reload, err := o.tls.config([]urlSetting{{"listen-client-urls", o.listenClient}, {"listen-metrics-urls", o.listenMetrics}}, s.from, s.log)
	s.reloadTLS = reload
	return config, err
}

func (s *serving) storeOptions(d *etcdapi.Durations) store.Options {
	o := &s.opts
	return store.Options{
		Dir:               o.dataDir,
		FS:                s.disk,
		Logger:            s.log,
		ExpectID:          o.storeID,
		AllowMissingLog:   o.allowMissingLog,
		Quota:             o.quota,
		CheckpointBytes:   o.checkpointBytes,
		CheckpointAge:     o.checkpointAge,
		ProgressInterval:  o.progressInterval,
		ObserveSync:       d.ObserveSync,
		ObserveCheckpoint: d.ObserveCheckpoint,
		ObservePublish:    s.manager.reporter.Event,
		ObserveRecovery:   s.manager.recovery.Advance,
	}
}

func (s *serving) apiConfig(tlsConfig *tls.Config, d *etcdapi.Durations) etcdapi.Config {
	o := &s.opts
	advertise := o.advertiseClient
	if len(advertise) == 0 {
		advertise = advertised(o.listenClient)
	}
	return etcdapi.Config{
		Store:            s.store,
		Logger:           s.log,
		Name:             o.name,
		ClientURLs:       urlTexts(advertise),
		MaxRequestBytes:  int(o.maxRequestBytes),
		MaxTxnOps:        o.maxTxnOps,
		MaxStreams:       uint32(o.maxStreams),
		ListBudget:       o.listBudget,
		TLS:              tlsConfig,
		KeepAliveMinTime: o.keepAliveMinTime,
		EnablePprof:      o.enablePprof,
		SaveProcessors:   os.Getenv("GOMAXPROCS") == "", // who sets it wants that many
		LogLevel:         s.level,
		MetricsExtensive: o.metrics == metricsExtensive,
		Durations:        d,
		DiskWait:         s.longestWait,
		AuthToken:        o.auth.token,
		AuthTokenTTL:     o.auth.tokenTTL,
		BcryptCost:       o.auth.bcryptCost,
		ClientCertAuth:   o.tls.clientCertAuth,
		CORS:             o.cors,
	}
}

// sayWhatIsOdd logs what a person should know about the settings.
func (s *serving) sayWhatIsOdd() {
	o := &s.opts
	s.log.Info("tarn starts", "version", tarnVersion, "data-dir", o.dataDir)
	if names := o.toleratedSettings.names(); len(names) > 0 {
		s.log.Info("settings of etcd that mean nothing here are ignored", "settings", names)
	}
	if o.allowMissingLog {
		s.log.Warn("--allow-missing-log is set: a log that got lost would not be noticed; take the setting away after this start",
			"from", s.from.of("allow-missing-log"))
	}
	if o.tls.certFile != "" && !slices.ContainsFunc(o.listenClient, etcdapi.ListenURL.Secure) {
		s.log.Warn("--cert-file is set and no client URL begins with https:// or unixs://: clients are served without TLS")
	}
}

// warnExposed logs where strangers come in. users is whether they would have to
// give a password, or to show a certificate with their name.
func (s *serving) warnExposed(users bool) {
	for _, u := range s.opts.listenClient {
		switch {
		case !exposed(u):
		case users && !u.Secure():
			s.log.Warn("passwords and tokens of users go over the network in the clear: use https://", "url", u.String())
		case users:
		case !u.Secure():
			s.log.Warn("ANYONE WHO REACHES THIS ADDRESS CAN READ AND CHANGE EVERYTHING, Kubernetes secrets included: "+
				"use https:// with --trusted-ca-file, or listen at 127.0.0.1 or a unix socket", "url", u.String())
		case s.opts.tls.trustedCAFile == "":
			s.log.Warn("clients need no certificate: anyone who reaches this address can read and change everything; "+
				"set --trusted-ca-file to demand one", "url", u.String())
		}
	}
}

// warnUnknown tells of variables that look like settings and are none. It is
// not an error: Kubernetes puts such variables into containers for a service
// that is named tarn.
func (s *serving) warnUnknown(names []string) {
	for _, name := range names {
		s.log.Warn(fmt.Sprintf("the environment variable %s is no setting of tarn and is ignored", name))
	}
}
