package addon

import "testing"

func TestChoosingDocuments(t *testing.T) {
	const documents = "---\nmetadata: {name: a}\n---\nmetadata: {name: b}\n---\nmetadata: {name: c}\n"
	if got, err := choose(documents, []string{"a", "c"}); err != nil || got != "---\nmetadata: {name: a}\n---\nmetadata: {name: c}\n" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := choose(documents, []string{"a", "d"}); err == nil {
		t.Error("what is missing was not missed")
	}
}
