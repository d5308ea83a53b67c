package main

import (
	"math"

	"github.com/spf13/pflag"

	"github.com/tarn-kv/tarn/zfs"
)

// rulesOptions are the rules of keeping.
type rulesOptions struct{ zfs.Rules }

// ruleHelp is for the help of commands with rules.
const ruleHelp = `--keep-last keeps the newest snapshots, and the newest of all in any case.
--keep-hourly, -daily, -weekly and -monthly keep the newest snapshot of each hour,
day, week or month (in UTC), for the newest so many of them that have snapshots, and
as well for those not older than so many hours, days, weeks or months. So a clock
that is wrong for a while costs no snapshot. What is held, the origin of a clone,
or the newest that was verified, is kept in any case. Without any of these flags
the rules are --keep-last 10 --keep-hourly 48 --keep-daily 14 --keep-weekly 8
--keep-monthly 12; with some, the others are 0, so --keep-last 0 alone keeps only
the newest and what is kept in any case. A copy whose description is damaged is kept.`

func (o *rulesOptions) register(fs *pflag.FlagSet) {
	for _, r := range []struct {
		p          *int
		flag, help string
	}{
		{&o.Last, "keep-last", "how many of the newest snapshots to keep"},
		{&o.Hourly, "keep-hourly", "for how many hours to keep the newest snapshot"},
		{&o.Daily, "keep-daily", "for how many days to keep the newest snapshot"},
		{&o.Weekly, "keep-weekly", "for how many weeks to keep the newest snapshot"},
		{&o.Monthly, "keep-monthly", "for how many months to keep the newest snapshot"},
	} {
		*r.p = notGiven
		fs.Var(intValue(r.p, 0, math.MaxInt32), r.flag, r.help)
		fs.Lookup(r.flag).DefValue = ""
	}
}

// notGiven is the value of a rule that nobody has set: 0 is one that can be wanted.
const notGiven = -1

// rules are the rules that were given, or the default if none was.
func (o *rulesOptions) rules() zfs.Rules {
	if o.Rules == (zfs.Rules{Last: notGiven, Hourly: notGiven, Daily: notGiven, Weekly: notGiven, Monthly: notGiven}) {
		return zfs.DefaultRules()
	}
	return zfs.Rules{Last: max(0, o.Last), Hourly: max(0, o.Hourly), Daily: max(0, o.Daily), Weekly: max(0, o.Weekly), Monthly: max(0, o.Monthly)}
}
