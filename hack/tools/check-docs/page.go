/*
Copyright 2026.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package main

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// page is what a Markdown page says that can be checked.
type page struct {
	anchors set
	links   []located
	spans   []located
	blocks  []block
	// ignored are not to be found, for a reason.
	ignored set
}

// located is a piece of text and the number of its line.
type located struct {
	text string
	line int
}

// block is a fenced code block.
type block struct {
	language string
	located  // of what is in it
}

type set map[string]struct{}

func (s set) add(names ...string) {
	for _, name := range names {
		s[name] = struct{}{}
	}
}

func (s set) has(name string) bool {
	_, ok := s[name]
	return ok
}

var (
	ignoreComment = regexp.MustCompile(`<!-- check-docs: ignore (.*?) -->`)
	htmlAnchor    = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
)

func parse(source []byte) *page {
	p := &page{anchors: set{}, ignored: set{}}
	for _, match := range ignoreComment.FindAllSubmatch(source, -1) {
		p.ignored.add(strings.Fields(string(match[1]))...)
	}
	for _, match := range htmlAnchor.FindAllSubmatch(source, -1) {
		p.anchors.add(string(match[1]))
	}
	at := func(what string, offset int) located {
		return located{what, 1 + bytes.Count(source[:offset], []byte("\n"))}
	}
	document := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(text.NewReader(source))
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) { // It returns no error.
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := node.(type) {
		case *ast.Heading:
			p.addHeading(plain(n, source))
		case *ast.Link:
			p.links = append(p.links, at(string(n.Destination), offset(n)))
		case *ast.Image:
			p.links = append(p.links, at(string(n.Destination), offset(n)))
		case *ast.CodeSpan:
			p.spans = append(p.spans, at(plain(n, source), offset(n)))
		case *ast.FencedCodeBlock:
			if lines := n.Lines(); lines.Len() > 0 {
				p.blocks = append(p.blocks, block{
					string(n.Language(source)), at(string(lines.Value(source)), lines.At(0).Start),
				})
			}
		}
		return ast.WalkContinue, nil
	})
	return p
}

// addHeading adds the anchor that GitHub gives a heading.
func (p *page) addHeading(heading string) {
	anchor := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, heading)
	unique := anchor
	for n := 1; p.anchors.has(unique); n++ {
		unique = anchor + "-" + strconv.Itoa(n)
	}
	p.anchors.add(unique)
}

// offset returns where in the source the node is: where the first text in or after it
// begins, or else the block that it is in.
func offset(node ast.Node) int {
	for n := node; n != nil; n = n.FirstChild() {
		if t, ok := n.(*ast.Text); ok {
			return t.Segment.Start
		}
	}
	for n := node.Parent(); n != nil; n = n.Parent() {
		if n.Type() == ast.TypeBlock && n.Lines().Len() > 0 {
			return n.Lines().At(0).Start
		}
	}
	return 0
}

// plain returns the text of the node without its formatting.
func plain(node ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(source))
			if t.SoftLineBreak() {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}
