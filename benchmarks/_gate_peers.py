"""Peers of `benchmarks/gate_service.py`, each in its own process: `_gate_peers.py duckdb|spark FOLDER K [MASTER]`."""

import json
import sys
import time


def by_duckdb(folder: str, k: int) -> dict[str, float]:
    """Group by DuckDB with as many threads as there are cores."""
    import duckdb

    start, used = time.perf_counter(), time.process_time()
    statement = "SELECT count(*) FROM (SELECT text FROM read_parquet(?) GROUP BY text HAVING count(*) >= ?)"
    (frequent,) = duckdb.execute(statement, [f"{folder}/*.parquet", k]).fetchone()  # type: ignore[misc]
    return {
        "frequent": frequent,
        "wall_seconds": time.perf_counter() - start,
        "processor_seconds": time.process_time() - used,
    }


def by_spark(folder: str, k: int, master: str) -> dict[str, float]:
    """Group by Spark's own SQL, on as many executors as the site's gate has."""
    from pyspark.sql import SparkSession

    start = time.perf_counter()
    session = SparkSession.builder.master(master).config("spark.ui.enabled", "false").getOrCreate()
    session.range(1).collect()
    ready = time.perf_counter()
    session.read.parquet(folder).createOrReplaceTempView("pool")
    statement = f"SELECT count(*) FROM (SELECT text FROM pool GROUP BY text HAVING count(*) >= {k})"
    (frequent,) = session.sql(statement).first()
    end = time.perf_counter()
    session.stop()
    return {"frequent": frequent, "wall_seconds": end - start, "ready_seconds": ready - start}


def main() -> None:
    """Count, and print what it took as JSON."""
    engine, folder, k, *master = sys.argv[1:]
    count = {"duckdb": by_duckdb, "spark": by_spark}[engine]
    print(json.dumps(count(folder, int(k), *master)))


if __name__ == "__main__":
    main()
