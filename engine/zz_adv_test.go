package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func advPolicy(blocked, allowed []string) *ActionPolicy {
	return &ActionPolicy{PolicyID: "3f0c9a52-7d0e-4f5c-9a3b-1c2d3e4f5a6b", Version: 1, OrganizationID: "o", AgentID: "*",
		AllowedActionTypes: []string{"*"}, BlockedResourcePatterns: blocked, AllowedResourcePatterns: allowed, Status: StatusActive, UpdatedAt: time.Now()}
}

func TestZZCompileTime(t *testing.T) {
	gen := map[string]func(i int) string{
		"literal":   func(i int) string { return fmt.Sprintf("https://e%d.example.com/", i) + strings.Repeat("a", 980) },
		"star32":    func(i int) string { return fmt.Sprintf("p%d/", i) + strings.Repeat("a*b", 31) + strings.Repeat("x", 900) },
		"superhost": func(i int) string { return "**" + strings.Repeat("A.", 30) + fmt.Sprintf("x%d/", i) + strings.Repeat("x", 900) + "/*" },
		"question":  func(i int) string { return fmt.Sprintf("p%d/", i) + strings.Repeat("?", 1000) },
		"class":     func(i int) string { return fmt.Sprintf("p%d/", i) + strings.Repeat("[a-z]", 200) },
		"class*":     func(i int) string { return fmt.Sprintf("p%d/", i) + "*a*"+strings.Repeat("[a-z]", 200) },
		"bigclass*":     func(i int) string { return fmt.Sprintf("p%d/", i) + "*a*["+strings.Repeat("\u0101\u0103", 240)+"]" },
		"alt256":    func(i int) string { return fmt.Sprintf("p%d/", i) + strings.Repeat("{a,b}", 8) + strings.Repeat("x", 900) },
		"alt256*":    func(i int) string { return fmt.Sprintf("p%d/", i) + strings.Repeat("{a,b}", 8) + strings.Repeat("*x", 31)+ strings.Repeat("x", 800) },
		"alt64host*":    func(i int) string { return fmt.Sprintf("https://*.P%d.", i) + strings.Repeat("{a,b}", 6) + ".Com:443/"+strings.Repeat("%7E*x", 28)+ strings.Repeat("x", 750) },
		"idna":    func(i int) string { return fmt.Sprintf("https://é%d.", i) + strings.Repeat("é", 50) + ".com/" + strings.Repeat("é*", 30)},
		"nest":    func(i int) string { return strings.Repeat("a:", 400) + fmt.Sprintf("https://é%d.com/**", i)},
		"nest*":    func(i int) string { return strings.Repeat("*:", 30) +strings.Repeat("a:", 400) + fmt.Sprintf("https://é%d.com/**", i)},
		"supers":    func(i int) string { return strings.Repeat("**a", 31) + fmt.Sprintf("%d", i)},
		"superhosts":    func(i int) string { return "https://"+strings.Repeat("**a", 31) + fmt.Sprintf("%d/x", i)},
		"altnested": func(i int) string { return strings.Repeat("{", 8) + strings.Repeat("a,", 200) + "b" + strings.Repeat("}", 8) + fmt.Sprint(i) },
		"at": func(i int) string { return strings.Repeat("a@*B.com", 31) + fmt.Sprint(i) },
	}
	for name, g := range gen {
		t.Run(name, func(t *testing.T) {
			var ps []string
			for i := range 1000 {
				p := g(i)
				if len(p) > 1024 {
					p = p[:1024]
				}
				ps = append(ps, p)
			}
			p := advPolicy(ps, nil)
			start := time.Now()
			// bounded sample first
			_, err := CompileGlobs(ps[:20])
			d := time.Since(start)
			fmt.Printf("%-12s 20 patterns %v err=%v\n", name, d, err)
			if err != nil || d > 2*time.Second {
				return
			}
			start = time.Now()
			err = p.Validate()
			v := time.Since(start)
			start = time.Now()
			c, err2 := CompilePolicy(p)
			size := 0
			if c != nil {
				size = c.Size()
			}
			fmt.Printf("%-12s validate %v (%.80v) compile %v size %d (%.80v)\n", name, v, err, time.Since(start), size, err2)
		})
	}
}
