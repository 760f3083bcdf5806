-- The runs of one agent, the best first. Never changed once 0.2 is released.

CREATE INDEX trajectory_ranked_of_agent
    ON trajectory (tenant, agent, solved DESC, seen_at DESC);
