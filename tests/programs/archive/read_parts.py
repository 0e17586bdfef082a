"""Counts the answers of an archive with DuckDB and with Polars, by gateway and day."""
import json
import sys

import duckdb, polars

parts = sys.argv[1] + "/identifications/**/*.parquet"
duck = duckdb.sql(f"""
    SELECT gateway, day::VARCHAR AS day, count(*) AS answers
    FROM read_parquet('{parts}', hive_partitioning = true) GROUP BY ALL ORDER BY ALL""").fetchall()
frame = polars.scan_parquet(parts, hive_partitioning=True, try_parse_hive_dates=False)
counted = frame.group_by("gateway", "day").len("answers").sort("gateway", "day").collect()
print(json.dumps({"duck": duck, "polars": counted.rows()}))
