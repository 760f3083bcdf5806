"""Prose and code fall into words to search for."""

from collections import Counter

import pytest

from contextgraph import AgentMemory
from contextgraph.model import Scope
from contextgraph.text import bm25, words
from tests.builders import run


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("getattr_static", ["getattr_static", "getattr", "static"]),
        ("getHTTPResponse", ["gethttpresponse", "get", "http", "response"]),
        ("ValueError", ["valueerror", "value", "error"]),
        ("os.path.join", ["os", "path", "join"]),
        ("src/app/models.py", ["src", "app", "models", "py"]),
        ("MAX_SIZE", ["max_size", "max", "size"]),
        ("__init__", ["init"]),
        ("sha256 utf8", ["sha256", "utf8"]),
        ("line 404 of 7", ["line"]),
        ("The test was not in the list", ["test", "list"]),
        ("naïve_Straße", ["naïve_straße", "naïve", "straße"]),
        ("SQLite SQLite3", ["sqlite", "sqlite3"]),
        ("SQLiteStore", ["sqlitestore", "sqlite", "store"]),
        ("为什么选择 SQLite", ["为什", "什么", "么选", "选择", "sqlite"]),
        ("使用SQLite存储", ["使用", "sqlite", "存储"]),
        ("猫", ["猫"]),
        ("x y1", ["y1"]),
        ("error error", ["error", "error"]),
        ("", []),
        ("a" * 65, []),
        ("spam_" + "a" * 65, ["spam"]),
    ],
)
def test_a_text_gives_identifiers_and_their_parts(text, found):
    assert words(text) == found


NOTES = (
    "数据库选择 SQLite，因为不需要服务器",
    "测试用 pytest 运行，不要直接调用脚本",
    "支付接口超时后重试三次，然后报警",
    "用户喜欢简洁的中文回答",
    "发布之前必须更新变更日志",
    "订单金额按分存储，避免浮点误差",
    "日志不能包含手机号和密码",
    "缓存使用 Redis，过期时间一小时",
    "前端代码在 web 目录，后端代码在 server 目录",
    "牙科复诊安排在二月二十三日上午十点",
)
QUESTIONS = (
    "为什么选择这个数据库？",
    "怎么运行测试",
    "接口超时怎么办",
    "回答要简洁吗",
    "发布前更新什么",
    "金额怎么存储",
    "日志里可以有密码吗",
    "缓存的过期时间",
    "后端代码在哪个目录",
    "什么时候牙科复诊",
)


def test_questions_in_chinese_find_their_notes():
    counted = [Counter(words(note)) for note in NOTES]
    found = []
    for question in QUESTIONS:
        scores = bm25(words(question), counted)
        found.append(scores.index(max(scores)))
    assert found == [*range(len(NOTES))]


def test_runs_with_a_task_in_chinese_are_found():
    with AgentMemory.open(":memory:") as memory:
        memory.learn(run([("make", "", 0)], instance_id="shop-1", task=f"修复：{NOTES[2]}"))
        memory.learn(run([("make", "", 0)], instance_id="shop-2", task=f"修复：{NOTES[5]}"))
        found = memory.store.runs.for_text(words(QUESTIONS[2]), Scope(), 5)
    assert [one.instance_id for one in found] == ["shop-1"]
