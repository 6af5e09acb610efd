module github.com/jamq/jamq/submit/jamnps

go 1.25.0
