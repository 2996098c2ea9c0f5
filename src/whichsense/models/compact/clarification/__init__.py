"""One question back to the person, made from what tells the readings of a question apart.

`alignment` compares the question with all its rewrites, `phrases` lists what an option may say, `phrase_features` and
`ranking` choose, `polishing` makes phrases whole for people, `leads` says what the options have in common, `labels` and
`grouping` write and order the options, `worth` decides whether to ask at all, `form` checks and repairs clarifications
that come from elsewhere.
"""
