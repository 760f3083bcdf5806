"""Which sentences require a way of working of an agent, and which only sound like it."""

import pytest

from contextgraph.knowledge.ways import ways_in

_REQUIRED = {
    "ask before you decide": (
        "Ask me before you pick a library.",
        "Always ask questions if something is unclear.",
        "Don't decide that on your own.",
        "Never make architectural decisions without asking.",
    ),
    "version control is mine": (
        "Don't commit anything.",
        "Never push to main.",
        "No git commits, please.",
        "I will commit myself.",
    ),
    "plan before you change": (
        "Don't code yet.",
        "Do not change anything until I say go.",
        "Plan first.",
        "First give me a plan.",
    ),
    "no duplication": (
        "Keep it DRY.",
        "Why is this code here twice?",
        "You duplicated the helper.",
        "Don't repeat yourself.",
    ),
    "reuse what exists": (
        "Reuse the existing helpers.",
        "We already have a function for that.",
        "Don't reinvent the wheel.",
        "There's a helper for that already.",
    ),
    "do it as elsewhere": (
        "Follow the existing patterns.",
        "Do it like we do everywhere else.",
        "Follow the conventions.",
        "Look how the other handlers do it elsewhere.",
    ),
    "change only what was asked": (
        "Only change what I asked for.",
        "Change this line and nothing else.",
        "No scope creep.",
        "You made unrelated changes.",
    ),
    "few files": (
        "Don't create new files.",
        "Why a new file?",
        "Too many files.",
        "Why did you create utils.py?",
    ),
    "few comments": (
        "No comments.",
        "Don't add comments.",
        "Remove the comments.",
        "Too many comments.",
    ),
    "run the tests": (
        "Run the tests before you say it's done.",
        "Always run the tests.",
        "Run all tests.",
        "Didn't you run the tests?",
    ),
    "write tests": (
        "Where are the tests?",
        "Every feature needs a test.",
        "You forgot the tests.",
        "Why are there no tests?",
    ),
    "run the linter": (
        "Always run the linter.",
        "Run lint before you commit.",
        "After each change run the formatter.",
        "Lint everything.",
    ),
    "be brief": (
        "Keep your answers short.",
        "Be brief.",
        "Too verbose.",
        "No summaries.",
    ),
    "step by step": (
        "One by one.",
        "Do it step by step.",
        "Stop after each file.",
        "One at a time.",
    ),
    "do not guess": (
        "Don't guess.",
        "Never assume.",
        "Stop guessing.",
        "No speculation.",
    ),
    "keep it simple": (
        "Keep it simple.",
        "Don't overengineer.",
        "KISS.",
        "You over-complicated it.",
    ),
    "no mocks": (
        "No mocks.",
        "Don't mock the database.",
        "Never use mocks.",
        "Stop mocking.",
    ),
    "no new dependencies": (
        "No new dependencies.",
        "Don't add new libraries.",
        "Never install another package.",
        "Do not add a new dependency.",
    ),
    "no silent fallbacks": (
        "No fallbacks.",
        "Don't swallow exceptions.",
        "Never hide errors.",
        "No silent fallbacks.",
    ),
    "no emojis": (
        "No emojis.",
        "Don't use emojis.",
        "Stop using emojis.",
        "Never put emojis in code.",
    ),
    "names in full words": (
        "No abbreviations.",
        "Don't abbreviate names.",
        "Use full words.",
        "Use descriptive names.",
    ),
    "no compatibility layers": (
        "No backward compatibility.",
        "Don't keep backwards-compat shims.",
        "No shims.",
        "We do not need backward compatibility.",
    ),
}
_OF_ANOTHER = {
    "ask before you decide": (
        "The form has to ask me for the currency.",
        "Users ask me where the invoice is.",
        "The wizard must always ask two questions.",
        "The dialog asks without asking twice.",
        "The vendor and I decide the price on Monday.",
    ),
    "version control is mine": (
        "Don't commit generated files.",
        "Don't commit secrets.",
        "Never commit the .env file.",
        "Don't push the button twice in the test.",
        "The transaction must not commit before the lock is taken.",
        "Never commit without running the tests.",
        "Do not push notifications on weekends.",
        "No commit message without a ticket number.",
        "Don't push large files to the repository.",
        "Never push an empty list onto the stack.",
    ),
    "plan before you change": (
        "The job must not start until the lock is free.",
        "Never write to the file before it is flushed.",
        "Do not change the price until the order is paid.",
        "Wait for my server to answer.",
        "First load the billing plan.",
    ),
    "no duplication": (
        "Remove duplicate rows from the class list.",
        "Repeat the request once per class.",
        "The same class is scheduled again on Monday.",
        "The retry logic waits two times as long.",
        "Copy and paste must work in the editor.",
    ),
    "reuse what exists": (
        "There is a function key somewhere on the device.",
        "If the user already exists, class it as a duplicate.",
        "We had a class on Monday already.",
        "Reinvented is the brand name of the customer.",
    ),
    "do it as elsewhere": (
        "Follow the pattern `*.csv`.",
        "As we have other plans, skip it.",
        "See where the other server has similar logs.",
        "The bot is following the conventions channel.",
        "As the other job has already finished, start this one.",
    ),
    "change only what was asked": (
        "Unrelated files end up in the archive.",
        "The shop does not ask for a phone number.",
        "Don't change the other currency.",
        "Never touch the other tenant's rows.",
        "Fix the date, nothing else works meanwhile.",
    ),
    "few files": (
        "The export must not write new files on Sundays.",
        "Too many files open in production.",
        "Never upload another file while one is running.",
        "No new scripts are loaded by the page after consent.",
        "The watcher does not see new files.",
    ),
    "few comments": (
        "Users cannot delete comments of others.",
        "Without comments the blog post looks empty.",
        "Remove the comments table from the schema.",
        "Stop counting comments twice.",
        "Comments that explain the ban must be kept for a year.",
    ),
    "run the tests": ("Never run load tests against production.",),
    "write tests": (
        "Where is the test server?",
        "The user forgot the test password.",
        "Each account without a test mode is charged.",
        "Why is there no test currency?",
        "Missing test data for March.",
    ),
    "run the linter": (
        "Before export, format the phone number.",
        "Always format prices with two decimals.",
        "The report format changes before Christmas.",
        "Every invoice has its own format.",
        "Format the whole disk.",
    ),
    "be brief": (
        "The short answer field allows 40 characters.",
        "The summary of the order is too long for the label.",
        "Short responses from the server mean an error.",
        "No summary is sent to free users.",
        "Make the response timeout shorter.",
    ),
    "step by step": (
        "Process the rows one at a time.",
        "Send the emails one by one.",
        "Wait after each retry.",
        "The lock admits one at a time.",
        "Stop at each station.",
    ),
    "do not guess": (
        "The parser must not guess the encoding.",
        "The password must not be guessable.",
        "Users should not have to guess the order number.",
        "The model must not hallucinate prices to customers.",
        "No guessing game on the landing page.",
    ),
    "keep it simple": ("The simplest thing in the catalogue costs 3 euros.",),
    "no mocks": (
        "No mocking bird in the logo.",
        "Never ship the mock server.",
        "Not the mockup but the sketch.",
        "The bot must not mock users.",
        "Why is there a mock exam on Monday?",
    ),
    "no new dependencies": (
        "There is no new package for the customer.",
        "No more packages fit in the van.",
        "Do not deliver another package on Sunday.",
        "No extra package fee.",
        "The library is not open: no new library cards.",
    ),
    "no silent fallbacks": (
        "The importer must not hide error rows.",
        "Never hide the error banner.",
        "The form does not suppress errors of the browser.",
        "No fallback font is licensed.",
        "The logger does not swallow exceptions of the thread.",
    ),
    "no emojis": (
        "No emoji picker on mobile.",
        "The parser does not handle emojis.",
        "The font has no emojis.",
        "Never count an emoji as two characters.",
        "Usernames must not contain emojis.",
    ),
    "names in full words": (
        "Show the full names of customers.",
        "Passengers must give their full names.",
        "The column holds whole words.",
        "State names are not abbreviated on labels.",
        "No abbreviated month in the invoice.",
    ),
    "no compatibility layers": (
        "The archive is not backwards compatible.",
        "Version 2 was never backward compatible with 1.",
        "There is no shim between the plates.",
        "The washer has no shims.",
        "No backward compatibility was promised to customer A.",
    ),
}


@pytest.mark.parametrize("way", _REQUIRED)
def test_a_way_is_known_by_its_wordings(way: str) -> None:
    assert [said for said in _REQUIRED[way] if way not in ways_in(said)] == []


@pytest.mark.parametrize("way", _OF_ANOTHER)
def test_what_the_product_is_to_do_is_no_way_of_working(way: str) -> None:
    assert [said for said in _OF_ANOTHER[way] if way in ways_in(said)] == []
