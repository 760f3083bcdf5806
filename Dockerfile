# The service, and the command line: docker-compose.yml starts it beside Neo4j; docs/service.md says how to use it.
ARG BASE=python:3.12-slim
FROM ${BASE} AS build
WORKDIR /app
COPY requirements/server.txt requirements/
RUN python3 -m venv /venv && /venv/bin/pip install --no-cache-dir --require-hashes -r requirements/server.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY contextgraph contextgraph
COPY cypher cypher
RUN /venv/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM ${BASE}
COPY --from=build /venv /venv
# The memory file where the store is no server, the tokens, and runs that wait for a server.
RUN mkdir /data && chown 1000:1000 /data
USER 1000:1000
ENV PATH=/venv/bin:$PATH HOME=/data XDG_DATA_HOME=/data
VOLUME /data
WORKDIR /runs
EXPOSE 8642
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s \
    CMD ["python3", "-c", "import urllib.request as http; http.urlopen('http://127.0.0.1:8642/readyz', timeout=8)"]
ENTRYPOINT ["contextgraph"]
CMD ["serve", "--host", "0.0.0.0"]
