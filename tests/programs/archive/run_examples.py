"""Runs the examples of docs/archives.md in SQL and Python, in a folder with `results`; prints how many rows each has."""
import json
import re
import sys

import duckdb, polars

text = open(sys.argv[1]).read()
rows = [len(duckdb.sql(sql).fetchall()) for sql in re.findall(r"```sql\n(.*?)```", text, re.S)]
for code in re.findall(r"```python\n(.*?)```", text, re.S):
    names = {}
    exec(code.replace("print(", "result = ("), names)
    rows.append(len(names["result"]))
print(json.dumps(rows))
