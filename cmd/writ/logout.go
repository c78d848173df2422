package main

import (
	"cmp"
	"context"

	"writ.example/writ/cmd/remote"
)

type logoutCmd struct {
	Profile string `placeholder:"NAME" help:"The profile. Default: default."`
	JSON    bool   `name:"json" help:"Print a JSON object of the profile, without the key."`
}

func (c *logoutCmd) Help() string {
	return `Removes a profile of writ login. The credential itself stays good: writ api-key revoke
ends it.`
}

func (c *logoutCmd) Run(_ context.Context, s streams) error {
	all, name, err := profiles()
	if err != nil {
		return err
	}
	p, err := all.Pick(cmp.Or(c.Profile, defaultProfile), "")
	if err == nil {
		err = all.Without(p.Name).Save(name)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return remote.JSON(s.out, object{"profile": p.Name, "url": p.URL})
	}
	s.say("removed the profile %s, of %s", p.Name, p.URL)
	return nil
}
