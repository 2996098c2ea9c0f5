"""The forms that read titles, by what a title has: brackets, a longer name, an unnamed work, a document."""
