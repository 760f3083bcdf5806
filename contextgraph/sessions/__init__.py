"""Working memory, conversations and items of one run: see docs/sessions.md."""

from contextgraph.sessions.conversation import (
    Conversation as Conversation,
    ConversationWindow as ConversationWindow,
    Message as Message,
)
from contextgraph.sessions.items import Item as Item, ItemFile as ItemFile, Items as Items
from contextgraph.sessions.working import WorkingMemory as WorkingMemory
