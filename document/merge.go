package document

import (
	"bytes"
	"slices"
)

// merge writes the file with the wanted documents in the place of docs.
func (f *file) merge(docs []*Document, wanted []*node) ([]byte, error) {
	var pages []page
	if len(docs) > 0 {
		var err error
		if pages, err = f.pages(); err != nil {
			return nil, err
		}
	}
	i := 0
	next := func(x *element) *element {
		n := wanted[i]
		k := kindOf(docs[i].root)
		i++
		if n == nil {
			return nil
		}
		x.natural(k)
		return x.merge(n.natural(k), 0)
	}
	kept := pages[:0]
	for _, p := range pages {
		if p.root.kind == '[' {
			items := p.root.kids[:0]
			for _, x := range p.root.kids {
				if x = next(x); x != nil {
					items = append(items, x)
				}
			}
			p.root.kids = items
			kept = append(kept, p)
		} else if p.root = next(p.root); p.root != nil {
			kept = append(kept, p)
		}
	}
	for _, n := range wanted[i:] {
		x := made(n.natural(kindOf(n)), 0)
		if last := len(kept) - 1; last >= 0 && kept[last].root.kind == '[' {
			kept[last].root.kids = append(kept[last].root.kids, x)
			continue
		}
		kept = append(kept, page{root: x})
	}
	kept = slices.DeleteFunc(kept, func(p page) bool { return p.root.kind == '[' && len(p.root.kids) == 0 })
	return f.write(kept), nil
}

// merge returns x with the value n. What is equal stays as it is written.
func (x *element) merge(n *node, depth int) *element {
	if bytes.Equal(x.node().sorted().json(), n.sorted().json()) {
		return x
	}
	y := made(n, depth)
	y.comments, y.anchor = x.comments, x.anchor
	if x.kind != n.kind || n.kind != '{' && n.kind != '[' {
		return y
	}
	y.flow = x.flow
	used := make([]bool, len(x.kids))
	for i := range y.kids {
		deeper := depth + 1
		if n.kind == '{' && depth == 0 {
			deeper = depthOf(n.keys[i].name)
		}
		if j := x.counterpart(n, i, used); j >= 0 {
			used[j] = true
			if n.kind == '{' {
				y.keys[i] = x.keys[j]
			}
			y.kids[i] = x.kids[j].merge(n.kids[i], deeper)
		}
	}
	if n.kind == '{' {
		y.keepOrder(x)
	}
	return y
}

// counterpart returns which member or item of x becomes the ith of n, -1 where none does.
func (x *element) counterpart(n *node, i int, used []bool) int {
	for j := range x.kids {
		switch {
		case used[j]:
		case n.kind == '{' && x.keys[j].text == n.keys[i].name:
			return j
		case n.kind == '[' && bytes.Equal(x.kids[j].node().sorted().json(), n.kids[i].sorted().json()):
			return j
		}
	}
	if n.kind == '[' && len(x.kids) == len(n.kids) && !used[i] && (x.kids[i].kind == '{' || x.kids[i].kind == '[') {
		return i
	}
	return -1
}

// keepOrder puts the members that x has in x's order, before the others.
func (x *element) keepOrder(as *element) {
	rank := func(name string) int {
		at := slices.IndexFunc(as.keys, func(k *element) bool { return k.text == name })
		if at < 0 {
			return len(as.keys)
		}
		return at
	}
	x.sortMembers(rank)
}
