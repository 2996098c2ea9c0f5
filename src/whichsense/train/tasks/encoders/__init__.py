"""Tasks over BERT-like encoders and static vectors."""
