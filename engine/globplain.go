package engine

// CompilePlainGlobs compiles patterns as [CompileGlobs] does, but each is
// matched as it is written alone: for strings that are no resources, such as
// agent ids and metadata.
func CompilePlainGlobs(patterns []string) (*Globs, error) {
	g := &Globs{}
	for i, pattern := range patterns {
		alternatives, problem := parsePattern(pattern)
		for _, units := range alternatives {
			if problem == "" {
				problem = g.compile(i, units)
			}
		}
		if problem != "" {
			return nil, &PatternError{Index: i, Problem: problem}
		}
	}
	if err := g.build(); err != nil {
		return nil, err
	}
	return g, nil
}
