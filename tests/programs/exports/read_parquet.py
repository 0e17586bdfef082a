"""Prints the candidates, replies and first actions of a Parquet file as several readers find them."""

import json, sys
import duckdb, polars, pyarrow.parquet as pq

def actions(value):
    return None if value is None else dict(value)

def rows(table):
    for row in table:
        listed = [{**entry, "actions": actions(entry["actions"])} for entry in row["candidates"]]
        replies = [[reply["after_ns"], reply["length"]] for reply in row["single_replies"]]
        yield {"flow": row["flow"], "service": row["service"], "candidates": listed, "single_replies": replies,
               "actions": actions(row["actions"])}

file = sys.argv[1]
arrow = list(rows(pq.read_table(file).to_pylist()))
duck = duckdb.sql(f"SELECT flow, service, candidates, single_replies, actions FROM '{file}'")
duck = list(rows(dict(zip(duck.columns, row)) for row in duck.fetchall()))
columns = polars.read_parquet(file)
counts = columns["candidates"].list.len().to_list(), columns["single_replies"].list.len().to_list()
print(json.dumps({"arrow": arrow, "duck": duck, "polars": [columns["flow"].to_list(), *counts]}))
