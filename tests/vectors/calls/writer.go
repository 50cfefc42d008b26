package main

import (
	"fmt"
	"slices"
	"strings"
)

// kind is a type of objects, with the arguments that its histories use.
type kind struct {
	provider, name string
	data           bool
	arguments      map[string]argument
	// outputs are attributes with strings, to which other objects refer.
	outputs []string
	// once keeps two of them out of a configuration: they could not be told apart.
	once bool
	// file is the file of an object, so that a history can change it outside.
	file func(attributes map[string]any) string
	// identified types have an identity whose name is the id.
	identified bool
	// existing is the id of an object that can be imported with this configuration, and the files that it needs.
	existing func(random *source, config map[string]any) (id string, files map[string]string)
}

type argument struct {
	value    func(*source) any
	required bool
	// refers allows a reference to another object, and to only restricts it to this output.
	refers bool
	to     string
	// unique is the name of the object, with a prefix.
	unique bool
}

// writer makes a history step by step.
type writer struct {
	*source
	kinds   []kind
	step    *Step
	counter int
	// tag keeps names apart that histories use at the same server.
	tag string
}

// tale is the plot of histories with objects of these kinds.
func tale(configurations map[string]any, kinds ...kind) func(*source) *History {
	return func(random *source) *History {
		w := &writer{source: random, kinds: kinds, tag: fmt.Sprintf("%05x-", random.Intn(1<<20)), step: &Step{Command: "apply", Configurations: configurations}}
		for range 1 + w.Intn(4) {
			w.add()
		}
		for len(w.step.Objects) == 0 {
			w.add()
		}
		history := &History{Steps: []*Step{w.step}}
		for range 1 + w.Intn(3) {
			w.step = w.step.clone()
			w.edit()
			if len(w.step.Objects) == 0 {
				break
			}
			history.Steps = append(history.Steps, w.step)
		}
		if w.one(2) {
			last := w.step.clone()
			last.Command = "destroy"
			history.Steps = append(history.Steps, last)
		}
		for _, kind := range kinds {
			if !slices.Contains(history.Providers, kind.provider) {
				history.Providers = append(history.Providers, kind.provider)
			}
		}
		return history
	}
}

func (w *writer) kindOf(object *Object) kind {
	at := slices.IndexFunc(w.kinds, func(kind kind) bool { return kind.name == object.Type && kind.data == object.Data })
	return w.kinds[at]
}

func (w *writer) add() {
	kind := pick(w.source, w.kinds)
	if kind.once && slices.ContainsFunc(w.step.Objects, func(one *Object) bool { return one.Type == kind.name }) {
		return
	}
	w.counter++
	object := &Object{Name: fmt.Sprintf("o%d", w.counter), Type: kind.name, Data: kind.data, Config: map[string]any{}}
	for _, name := range sorted(kind.arguments) {
		if argument := kind.arguments[name]; argument.required || argument.unique || w.one(2) {
			w.set(object, name, argument)
			if object.Config[name] == nil && argument.required {
				// There is nothing to refer to.
				return
			}
		}
	}
	if !kind.data {
		object.CreateBeforeDestroy = w.one(6)
		if before := w.earlier(object); len(before) > 0 && w.one(6) {
			object.DependsOn = []string{pick(w.source, before).key()}
		}
		if kind.existing != nil && w.one(5) {
			id, files := kind.existing(w.source, object.Config)
			object.Import = id
			if kind.identified && w.one(2) {
				object.Import, object.Identity = "", map[string]any{"name": id}
				if w.one(2) {
					object.Identity["region"] = "home"
				}
			}
			if w.step.Outside == nil {
				w.step.Outside = map[string]string{}
			}
			for path, text := range files {
				w.step.Outside[path] = text
			}
		}
	}
	w.step.Objects = append(w.step.Objects, object)
}

// earlier are the objects that were there before another: references lead only to them, and so in no circle.
func (w *writer) earlier(object *Object) []*Object {
	at := slices.Index(w.step.Objects, object)
	if at < 0 {
		at = len(w.step.Objects)
	}
	return w.step.Objects[:at]
}

func (w *writer) set(object *Object, name string, argument argument) {
	if argument.value != nil {
		object.Config[name] = w.resolve(object, argument.value(w.source))
	}
	if argument.unique {
		object.Config[name] = named(object.Config[name], w.tag+object.Name)
	}
	if argument.refers && (argument.value == nil || w.one(3)) {
		if text := w.reference(object, argument.to); text != "" {
			if argument.value != nil && w.one(3) {
				text = "pre-" + text
			}
			object.Config[name] = text
		}
	}
}

// named puts a name into the value of an argument.
func named(value any, name string) any {
	switch value := value.(type) {
	case string:
		return fmt.Sprintf(value, name)
	case []any:
		value[0].(map[string]any)["name"] = name
	case map[string]any:
		value["of"] = name
	}
	return value
}

// reference is a reference to an object that was there before, or empty.
func (w *writer) reference(object *Object, to string) string {
	var all []string
	for _, before := range w.earlier(object) {
		for _, output := range w.kindOf(before).outputs {
			if to == "" || to == output {
				all = append(all, "${"+before.key()+"."+output+"}")
			}
		}
	}
	if len(all) == 0 {
		return ""
	}
	return pick(w.source, all)
}

// refer is the place of a reference in a value.
const refer = "@"

func reftext(s *source) any {
	if s.one(3) {
		return refer
	}
	return text(s)
}

// resolve copies a value, and puts references into it.
func (w *writer) resolve(object *Object, value any) any {
	switch value := value.(type) {
	case string:
		if value == refer {
			return w.reference(object, "")
		}
	case []any:
		all := make([]any, len(value))
		for i, item := range value {
			all[i] = w.resolve(object, item)
		}
		return all
	case map[string]any:
		all := map[string]any{}
		for _, key := range sorted(value) {
			all[key] = w.resolve(object, value[key])
		}
		return all
	}
	return value
}

// edit changes a few things.
func (w *writer) edit() {
	if w.one(8) {
		w.step.Command = "refresh"
		w.changeOutside(pick(w.source, w.step.Objects))
		return
	}
	for range 1 + w.Intn(2) {
		if len(w.step.Objects) == 0 {
			return
		}
		object := pick(w.source, w.step.Objects)
		switch w.Intn(12) {
		case 0:
			w.add()
		case 1:
			w.remove(object)
		case 2:
			w.rename(object)
		case 3:
			object.CreateBeforeDestroy = !object.CreateBeforeDestroy && !object.Data
			w.change(object)
		case 4:
			if !object.Data {
				names := sorted(object.Config)
				if len(names) > 0 {
					object.IgnoreChanges = []string{pick(w.source, names)}
				}
			}
			w.change(object)
		case 5:
			if !object.Data && !slices.Contains(w.step.Taint, object.Name) && object.MovedFrom == "" {
				w.step.Taint = append(w.step.Taint, object.Name)
			}
		case 6, 7:
			w.changeOutside(object)
		default:
			w.change(object)
		}
	}
	// Only objects that were there before can be tainted.
	w.step.Taint = slices.DeleteFunc(w.step.Taint, func(name string) bool {
		object := w.step.find(name)
		return object == nil || object.MovedFrom != ""
	})
}

func (w *writer) change(object *Object) {
	kind := w.kindOf(object)
	names := sorted(kind.arguments)
	name := pick(w.source, names)
	argument := kind.arguments[name]
	if _, set := object.Config[name]; set && !argument.required && !argument.unique && w.one(3) {
		delete(object.Config, name)
		return
	}
	w.set(object, name, argument)
}

func (w *writer) remove(object *Object) {
	mark := "${" + object.key() + "."
	for _, other := range w.step.Objects {
		if strings.Contains(fmt.Sprint(other.Config), mark) || slices.Contains(other.DependsOn, object.key()) {
			return
		}
	}
	w.step.Objects = slices.DeleteFunc(w.step.Objects, func(one *Object) bool { return one == object })
}

func (w *writer) rename(object *Object) {
	mark := "${" + object.key() + "."
	for _, other := range w.step.Objects {
		if strings.Contains(fmt.Sprint(other.Config), mark) || slices.Contains(other.DependsOn, object.key()) {
			return
		}
	}
	if object.Data || object.MovedFrom != "" || slices.Contains(w.step.Taint, object.Name) || object.Import != "" || object.Identity != nil {
		return
	}
	w.counter++
	object.MovedFrom, object.Name = object.Name, fmt.Sprintf("o%d", w.counter)
}

// changeOutside changes or removes the file of an object before the command.
func (w *writer) changeOutside(object *Object) {
	kind := w.kindOf(object)
	if kind.file == nil {
		return
	}
	address, text := object.address(), ""
	if object.MovedFrom != "" {
		address = object.Type + "." + object.MovedFrom
	}
	if w.one(2) {
		text = "changed outside"
	}
	previous := w.step.before
	w.step.before = func(step *Step, state *state) error {
		if previous != nil {
			if err := previous(step, state); err != nil {
				return err
			}
		}
		if attributes, ok := (*state)[address]; ok {
			if step.Outside == nil {
				step.Outside = map[string]string{}
			}
			if file := kind.file(attributes); file != "" {
				step.Outside[file] = text
			}
		}
		return nil
	}
}
